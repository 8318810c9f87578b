// Bundles the client into dist/main.js, and copies Plotly beside it: a chart's webview loads it on demand, so it never costs
// anything at activation.
import { build } from 'esbuild';
import { copyFile, mkdir, stat } from 'node:fs/promises';

const production = process.argv.includes('--production');
/** The largest main bundle we accept, in bytes. */
const LIMIT = 1_000_000;

await mkdir('dist', { recursive: true });
await build({
  entryPoints: ['src/main.ts'],
  outfile: 'dist/main.js',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  external: ['vscode'],
  minify: production,
  sourcemap: !production,
  legalComments: 'none',
});
await copyFile('node_modules/plotly.js-strict-dist-min/plotly-strict.min.js', 'dist/plotly.min.js');
await copyFile('../../LICENSE', 'LICENSE');

const { size } = await stat('dist/main.js');
if (production && size > LIMIT) {
  throw new Error(`dist/main.js has ${size} bytes, more than ${LIMIT}: find what was pulled in with esbuild --analyze`);
}
console.log(`dist/main.js: ${size} bytes`);
