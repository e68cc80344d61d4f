"""What a call fails with, as the packages report it."""

import pytest
from azure.core.exceptions import HttpResponseError


def refused(call, *arguments, **options):
    """Status and code of the error of a call, or of the operation that it begins."""
    with pytest.raises(HttpResponseError) as error:
        answer = call(*arguments, **options)
        if hasattr(answer, "result"):
            answer.result()
    return error.value.status_code, error.value.error.code
