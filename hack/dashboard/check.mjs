// Checks a dashboard against Grafana's published types: the dashboard, and the options, field settings and queries of each
// panel. Prints what does not fit, and fails.
//
// usage: node check.mjs FILE, beside node_modules
import fs from 'node:fs';
import path from 'node:path';
import ts from 'typescript';

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const dashboard = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const types = '@grafana/schema/dist/esm/raw/composable';
// What a panel of this type has in `options` and in `fieldConfig.defaults.custom`.
const panels = {
	timeseries: ['Timeseries.Options', 'Timeseries.FieldConfig'],
	stat: ['Stat.Options', '{}'],
	table: ['Table.Options', 'Table.FieldConfig'],
	text: ['Text.Options', '{}'],
};

// In JSON an enum is its value.
let source = `import type { Dashboard } from '@grafana/schema';
import type * as Timeseries from '${types}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type * as Stat from '${types}/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as Table from '${types}/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as Text from '${types}/text/panelcfg/x/TextPanelCfg_types.gen';
import type { PrometheusDataQuery } from '${types}/prometheus/dataquery/x/PrometheusDataQuery_types.gen';
type Plain<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
const dashboard: Plain<Dashboard> = ${JSON.stringify(dashboard)};
`;
const wrong = [];
for (const panel of dashboard.panels.filter((panel) => panel.type !== 'row')) {
	if (!panels[panel.type]) {
		wrong.push(`${panel.title}: no types are known here for a panel of type ${panel.type}`);
		continue;
	}
	const [options, custom] = panels[panel.type];
	source += `// ${panel.title}
const options${panel.id}: Plain<${options}> = ${JSON.stringify(panel.options)};
const custom${panel.id}: Plain<${custom}> = ${JSON.stringify(panel.fieldConfig.defaults.custom ?? {})};
`;
	panel.targets.forEach((target, n) => {
		source += `const query${panel.id}_${n}: Plain<PrometheusDataQuery> = ${JSON.stringify(target)};\n`;
	});
}

// Beside node_modules, where its imports are found; it exists only in memory.
const file = path.join(here, 'dashboard.ts');
const settings = {
	noEmit: true,
	strict: true,
	skipLibCheck: true,
	types: [],
	target: ts.ScriptTarget.ES2020,
	module: ts.ModuleKind.ES2020,
	moduleResolution: ts.ModuleResolutionKind.Bundler,
};
const host = ts.createCompilerHost(settings);
const { fileExists, getSourceFile } = host;
host.fileExists = (name) => name === file || fileExists(name);
host.getSourceFile = (name, ...rest) =>
	name === file ? ts.createSourceFile(name, source, rest[0]) : getSourceFile(name, ...rest);
const lines = source.split('\n');
for (const found of ts.getPreEmitDiagnostics(ts.createProgram([file], settings, host))) {
	const line = found.file ? found.file.getLineAndCharacterOfPosition(found.start).line : 0;
	wrong.push(`${lines[line].slice(0, 60)}…: ${ts.flattenDiagnosticMessageText(found.messageText, ' ')}`);
}
wrong.forEach((one) => console.error(one));
process.exit(wrong.length ? 1 : 0);
