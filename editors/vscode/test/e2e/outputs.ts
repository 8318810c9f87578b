/**
 * What the client shows of a run: report, chart, hint, interactive outputs, tree. The server is scripted, so that every kind
 * of output comes.
 */
import assert from 'node:assert/strict';
import type { Group } from './group';
import type { Parts } from './parts';
import { scripted } from './scripted';
import { Workbench } from './workbench';

/** Scenarios on one editor. */
export function outputs(parts: Parts): Group {
  return {
    name: 'outputs',
    start: () => Workbench.start(parts, scripted(parts)),
    scenarios: {
      'the report opens beside with its chart, and the focus stays': async (bench) => {
        await bench.open('sales.csv');
        await bench.page.locator('.view-line', { hasText: 'West' }).click();
        await bench.command('Code Interpreter: Analyze File');
        const report = await bench.frameWith('img[alt="chart 1"]');
        await bench.pixels(report.locator('img[alt="chart 1"]'), 5_000);
        await bench.page.keyboard.type('#');
        await bench.page.locator('.view-lines', { hasText: '#' }).first().waitFor();
        await bench.page.keyboard.press('Control+z');
        await bench.screenshot('outputs-report');
      },
      'a hint on the line opens the chart in the image viewer': async (bench) => {
        const hint = bench.hint('chart 1');
        await hint.waitFor();
        await hint.click({ modifiers: ['Control'] });
        await bench.tab('chart_1.png').waitFor();
        const viewer = await bench.frameWith('img.scale-to-fit, body.image img, img[src*="chart_1.png"]');
        await bench.pixels(viewer.locator('img').first(), 5_000);
        await bench.screenshot('outputs-image-viewer');
      },
      'another question on the same file takes the same tab': async (bench) => {
        await bench.tab('sales.csv').first().click();
        await bench.command('Code Interpreter: Ask About File…');
        await bench.answer('again, with plotly');
        await bench.page.waitForFunction(() => document.querySelectorAll('.tab[data-resource-name="sales.csv.md"]').length === 1);
        await (await bench.frameWith('img[alt="chart 1"]')).locator('img').first().waitFor();
        await bench.page.locator('.editor-group-container.active .tab.active', { hasText: /^sales.csv$/ }).waitFor();
      },
      'the tree lists runs, charts and files, and opens each kind': async (bench) => {
        await bench.page.locator('.activitybar .action-item [aria-label^="Code Interpreter"]').first().click();
        const row = bench.page.locator('.pane-body .monaco-list-row', { hasText: 'again, with plotly' });
        await row.waitFor();
        await row.locator('.monaco-tl-twistie').click();
        await bench.page.locator('.monaco-list-row', { hasText: 'figure.plotly.json' }).click();
        const figure = await bench.frameWith('#chart .main-svg');
        await bench.pixels(figure.locator('#chart'), 5_000);
        await bench.screenshot('outputs-plotly');
        await bench.page.locator('.monaco-list-row', { hasText: 'table.html' }).click();
        const table = await bench.frameWith('td');
        assert.equal(await table.locator('td').textContent(), '42');
        await bench.screenshot('outputs-html');
      },
      'variables of the kernel are shown': async (bench) => {
        await bench.command('Code Interpreter: Show Variables');
        await bench.page.locator('.monaco-list-row', { hasText: 'DataFrame 192 × 6' }).waitFor();
        await bench.screenshot('outputs-variables');
      },
      'typing updates the hover': async (bench) => {
        await bench.tab('sales.csv').first().click();
        await bench.page.locator('.view-line', { hasText: 'South' }).first().click();
        await bench.page.keyboard.press('End');
        await bench.page.keyboard.press('Enter');
        await bench.page.keyboard.type('South,Feb,7');
        await bench.page.locator('.view-line span', { hasText: 'North' }).last().hover();
        await bench.page.locator('.monaco-hover', { hasText: '7 lines' }).first().waitFor();
        await bench.screenshot('outputs-hover');
      },
      'the status bar opens a menu': async (bench) => {
        await bench.statusItem().click();
        await bench.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Choose Model' }).waitFor();
        await bench.screenshot('outputs-menu');
        await bench.page.keyboard.press('Escape');
      },
      'the walkthrough leads to the first report': async (bench) => {
        await bench.command('Welcome: Open Walkthrough...');
        await bench.pick('Ask your data a question');
        await bench.page.locator('.getting-started-step', { hasText: 'Analyze a file' }).first().waitFor();
        await bench.screenshot('outputs-walkthrough');
      },
      'the settings are grouped': async (bench) => {
        await bench.command('Code Interpreter: Open Settings');
        await bench.page.locator('.settings-toc-container, .settings-editor').first().waitFor();
        await bench.page.locator('.settings-editor', { hasText: 'Show results as hints' }).first().waitFor();
        await bench.screenshot('outputs-settings');
      },
    },
  };
}
