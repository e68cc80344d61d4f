# Reads Rust files and writes a table for each folder of src/: a row for each constant that is a duration, and for each
# duration in a constant such as `Limit { burst, interval }`.
#
# What it is: the first sentence of the constant's comment, or of the one right above the field. The last column: that
# comment's end, from `Source:` or `Rule:` on. Fails on a duration without a comment, and on one that it cannot read.

function fail(why) {
	printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
	exit failed = 1
}

# The number that a product such as `7 * 24 * 3_600` gives.
function product(text,   factors, count, result) {
	gsub(/[_ ]/, "", text)
	result = 1
	for (count = split(text, factors, "*"); count; count--) result *= factors[count]
	return result
}

# As people write it: `5 s`, `2 min`.
function plain(ms) {
	if (ms % 1000) return ms " ms"
	if (ms % 60000) return ms / 1000 " s"
	if (ms % 3600000) return ms / 60000 " min"
	if (ms % 86400000) return ms / 3600000 " h"
	return ms / 86400000 " days"
}

# The value of an expression; a constant in it stays a name.
function value(code,   call, amount) {
	while (match(code, /Duration::from_(secs|millis)\([0-9_* ]+\)/)) {
		amount = call = substr(code, RSTART, RLENGTH)
		gsub(/.*\(|\)/, "", amount)
		amount = plain(product(amount) * (call ~ /secs/ ? 1000 : 1))
		code = substr(code, 1, RSTART - 1) amount substr(code, RSTART + RLENGTH)
	}
	if (code ~ /^[A-Z0-9_]+\.saturating_add\([^()]+\)$/) {
		sub(/\.saturating_add\(/, "` + ", code)
		sub(/\)$/, "", code)
		code = "`" code
	}
	if (code ~ /[():]/) fail("cannot read " code)
	return code
}

# The paths of documents and sources as links, seen from docs/.
function linked(text,   name, path) {
	while (match(text, /`[A-Za-z0-9_\/-]+\.(md|rs)`/)) {
		path = name = substr(text, RSTART + 1, RLENGTH - 2)
		if (!sub(/^docs\//, "", path)) path = "../" path
		text = substr(text, 1, RSTART - 1) "[" name "](" path ")" substr(text, RSTART + RLENGTH)
	}
	return text
}

function row(name, comment, code,   what, source, folder) {
	if (comment == "") fail(name " has no comment")
	what = source = comment
	if (!sub(/.*(Source|Rule): /, "", source)) source = ""
	sub(/ *(Source|Rule): .*/, "", what)
	if (match(what, /\. [A-Z]/)) what = substr(what, 1, RSTART)
	gsub(/\[`/, "`", what)
	gsub(/`\]/, "`", what)
	sub(/\.$/, "", what)
	sub(/\.$/, "", source)
	split(FILENAME, folder, /[\/.]/)
	if (folder[2] != before) {
		print "\n## " (before = folder[2])
		print "\n| value | what it is | constant | source or rule |\n|---|---|---|---|"
	}
	printf "| %s | %s | `%s` in [%s](../%s) | %s |\n", value(code), what, name, FILENAME, FILENAME, linked(source)
}

FNR == 1 { comment = note = constant = ""; tests = 0 }

# Tests inside a file, and what only they use.
tests == 1 { tests = /\{$/ ? 2 : 0; next }
tests == 2 { if (/^}/) tests = 0; next }
/^#\[cfg\(test\)\]/ { tests = 1; next }

{ sub(/^ +/, "") }

# Inside a constant.
constant && /^\/\/ / { note = note (note ? " " : "") substr($0, 4); next }
constant && /^[a-z_]+: Duration::.*,$/ {
	field = code = $0
	sub(/:.*/, "", field)
	gsub(/^[a-z_]+: |,$/, "", code)
	row(constant "." field, note ? note : comment, code)
	note = ""
	next
}
constant && /^Duration::.*,$/ { sub(/,$/, ""); list = list (list ? ", " : "") $0; next }
constant && list && /^\];$/ { row(constant, comment, list); list = constant = comment = ""; next }
constant && /Duration::/ { fail("cannot read a duration in " constant) }
constant { note = ""; if (/;$/) constant = comment = ""; next }

# Before one.
/^\/\/\/ / { comment = comment (comment ? " " : "") substr($0, 5); next }
/^\/\/\/$/ || /^#\[/ { next }
/^(pub(\([a-z]+\))? )?const [A-Z0-9_]+: / {
	constant = $0
	sub(/^.*const /, "", constant)
	sub(/: .*/, "", constant)
	if (/: Duration = .*;$/) {
		code = $0
		gsub(/^[^=]*= |;$/, "", code)
		row(constant, comment, code)
	} else if (/Duration::/ || /: Duration =/) {
		fail("cannot read " constant)
	}
	if (/;$/) constant = comment = ""
	next
}
{ comment = "" }

END { exit failed }
