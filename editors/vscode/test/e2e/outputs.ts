/**
 * What the client shows of a run: report, chart, hint, interactive outputs, tree. The server is scripted, so that every kind
 * of output comes.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { interruptions } from './faults';
import type { Group } from './group';
import type { Parts } from './parts';
import { clickUntil, seen } from './patience';
import { scripted } from './scripted';
import { textIn } from './webviews';
import { Workbench } from './workbench';

/** Scenarios on one editor. */
export function outputs(parts: Parts): Group {
  return {
    name: 'outputs',
    start: () => Workbench.start(parts, scripted(parts, { files: { 'notes.txt': 'Nothing was asked about this.\n' } })),
    scenarios: {
      'the report opens beside with its chart, and the focus stays': async (bench) => {
        await bench.open('sales.csv');
        await bench.clickLine('West');
        await bench.command('Code Interpreter: Analyze File');
        await bench.hasPixels('img[alt="chart 1"]', 5_000);
        await bench.page.keyboard.type('#');
        await bench.page.locator('.view-lines', { hasText: '#' }).first().waitFor();
        await bench.page.keyboard.press('Control+z');
        await bench.screenshot('outputs-report');
      },
      'a hint on the line opens the chart in the image viewer': async (bench) => {
        await bench.open('sales.csv');
        await bench.command('Code Interpreter: Analyze File');
        await bench.followHint('chart 1', 'chart_1.png');
        await bench.hasPixels('img.scale-to-fit, body.image img, img[src*="chart_1.png"]', 5_000);
        await bench.screenshot('outputs-image-viewer');
      },
      'a hint that is drawn from an earlier answer opens its chart all the same': async (bench) => {
        await bench.open('sales.csv');
        await bench.ask('Code Interpreter: Ask About File…', 'hints once');
        await bench.hint('chart 1').waitFor();
        // The editor gives the hints back with the file, and draws them from its memory until it is told new ones: here never.
        await bench.open('notes.txt');
        await bench.hint('chart 1').waitFor({ state: 'hidden' });
        await bench.open('sales.csv');
        await bench.followHint('chart 1', 'chart_1.png');
      },
      'another question on the same file takes the same tab': async (bench) => {
        await bench.open('sales.csv');
        await bench.command('Code Interpreter: Analyze File');
        await bench.activeTab('sales.csv.md').waitFor();
        await bench.ask('Code Interpreter: Ask About File…', 'again, in other words');
        await bench.shows('body', 'Asked: again, in other words');
        await bench.page.waitForFunction(() => [...document.querySelectorAll('.tab')].filter(({ textContent }) => textContent === 'sales.csv.md').length === 1);
        await bench.shows('img[alt="chart 1"]');
        await bench.focusedTab('sales.csv').waitFor();
      },
      'the tree lists runs, charts and files, and opens each kind': async (bench) => {
        await bench.open('sales.csv');
        await bench.ask('Code Interpreter: Ask About File…', 'again, with plotly');
        await bench.showRuns();
        await bench.unfold(bench.row('again, with plotly'));
        await clickUntil(bench.row('figure.plotly.json'), {}, () => seen(bench.activeTab('figure.plotly.json')));
        await bench.shows('#chart .main-svg');
        await bench.hasPixels('#chart', 5_000);
        await bench.screenshot('outputs-plotly');
        await clickUntil(bench.row('table.html'), {}, () => seen(bench.activeTab('table.html')));
        assert.equal(await textIn(bench.page, 'td'), '42');
        await bench.screenshot('outputs-html');
      },
      'variables of the kernel are shown': async (bench) => {
        await bench.command('Code Interpreter: Show Variables');
        await bench.row('DataFrame 192 × 6').waitFor();
        await bench.screenshot('outputs-variables');
      },
      'typing updates the hover': async (bench) => {
        await bench.open('sales.csv');
        await bench.clickLine('South');
        await bench.page.keyboard.press('End');
        await bench.page.keyboard.press('Enter');
        await bench.page.keyboard.type('South,Feb,7');
        await bench.hoverUntil(bench.page.locator('.view-line span', { hasText: 'North' }).last(), '7 lines');
        await bench.screenshot('outputs-hover');
        await bench.command('File: Revert File');
      },
      'the status bar opens a menu': async (bench) => {
        const entry = bench.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Choose Model' });
        await clickUntil(bench.statusItem(), {}, () => seen(entry));
        await bench.screenshot('outputs-menu');
      },
      'a stored key reaches the environment of the server alone': async (bench) => {
        await bench.command('Code Interpreter: Store API Key…');
        await bench.quickInput().fill('key-of-the-test');
        await bench.screenshot('outputs-key');
        await bench.quickInput().press('Enter');
        // The server starts anew with it, and the scripted one notes what it was given.
        const noted = path.join(bench.editor.home, 'state', 'key');
        await bench.until('the key', () => existsSync(noted) && readFileSync(noted, 'utf8') === 'key-of-the-test');
        await bench.command('Code Interpreter: Forget API Key');
        await bench.until('no key', () => readFileSync(noted, 'utf8') === '');
      },
      ...interruptions,
      'the walkthrough leads to the first report': async (bench) => {
        await bench.command('Welcome: Open Walkthrough...');
        await bench.pick('Ask your data a question');
        await bench.page.locator('.getting-started-step', { hasText: 'Analyze a file' }).first().waitFor();
        await bench.screenshot('outputs-walkthrough');
      },
      'the settings are grouped': async (bench) => {
        await bench.command('Code Interpreter: Open Settings');
        await bench.page.locator('.settings-toc-container, .settings-editor').first().waitFor();
        for (const group of ['Model', 'Sandbox', 'Editor', 'Server']) {
          await bench.page.locator('.settings-toc-container', { hasText: group }).first().waitFor();
        }
        await bench.screenshot('outputs-settings');
      },
    },
  };
}
