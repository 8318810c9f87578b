/**
 * Documents and windows that are not the usual ones, and what is saved from a run. The real program, one editor.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import type { Group } from './group';
import { withExtensions } from './packages';
import type { Parts } from './parts';
import { ATTEMPT, clickUntil, eventually, gone, seen, settle } from './patience';
import { family, runs, serverPids } from './processes';
import { real } from './real';
import { Workbench } from './workbench';

/** VS Code hands documents up to 50 MB to extensions; this is one line more, in bytes. */
const TOO_LARGE = 50 * 1024 * 1024 + 1;

/** Scenarios on one editor, beside an extension that has a hover of its own. */
export function edges(parts: Parts): Group {
  const setup = real(parts, {
    settings: { 'workbench.editorLargeFileConfirmation': 100 },
    files: { 'large.csv': table(TOO_LARGE), 'prices.csv': 'product,price\nKettle,39.9\nToaster,49.5\nBlender,79\n' },
    env: { DOCKER_HOST: 'unix:///nowhere/docker.sock' },
  });
  return {
    name: 'edges',
    start: () => withExtensions(['second-hover'], (extensions) => Workbench.start(parts, { ...setup, extensions })),
    scenarios: {
      'beside another hover nothing is said twice': async (bench) => {
        await bench.open('sales.csv');
        const header = bench.page.locator('.view-line span', { hasText: 'date,region,product' }).last();
        await bench.hoverUntil(header, /Col 2: region[^]*4 distinct|4 distinct[^]*Col 2: region/, { x: 50, y: 5 });
        await bench.screenshot('edges-hover');
        const said = await bench.page.locator('.monaco-hover:visible').first().innerText();
        assert.equal(said.match(/Col 2: region/g)?.length, 1, said);
        assert.equal(said.match(/distinct/g)?.length, 1, said);
      },
      'several files of the explorer make one report': async (bench) => {
        await bench.showExplorer();
        await bench.explorerRow('prices.csv').click();
        // The click opens the file, and the selection grows once that is done.
        await bench.tab('prices.csv').first().waitFor();
        await bench.page.keyboard.press('Shift+ArrowDown');
        await bench.page.locator('.explorer-folders-view .monaco-list-row.selected[aria-label^="sales.csv"]').waitFor();
        await bench.explorerMenu('prices.csv', 'Analyze File');
        await bench.tab('prices.csv.md').waitFor();
        await bench.shows('body', /prices\.csv has 3 rows/);
        await bench.shows('body', /sales\.csv has 192 rows/);
        await bench.idle();
        await bench.screenshot('edges-several');
      },
      'an untitled document is analyzed': async (bench) => {
        await bench.command('File: New Untitled Text File');
        await bench.focusedTab('Untitled-1').waitFor();
        await bench.page.keyboard.type('city,people\nOslo,700\nBergen,290\nTromso,78\n');
        await bench.command('Code Interpreter: Analyze File');
        await bench.tab('Untitled-1.md').waitFor();
        await bench.shows('body', /has 3 rows and 2 columns/);
        await bench.idle();
        await bench.screenshot('edges-untitled');
        await discard(bench);
      },
      'a file outside of the workspace is analyzed': async (bench) => {
        const file = path.join(bench.editor.home, 'elsewhere.csv');
        writeFileSync(file, 'day,visits\n1,20\n2,34\n3,18\n4,50\n');
        await bench.command('File: Open File...');
        await answerPath(bench, file);
        await bench.focusedTab('elsewhere.csv').waitFor();
        await bench.command('Code Interpreter: Analyze File');
        await bench.shows('body', /elsewhere\.csv has 4 rows/);
        await bench.idle();
        await bench.screenshot('edges-outside');
      },
      'a table of more than 50 MB is analyzed as it is on disk, and that is said': async (bench) => {
        await bench.open('large.csv');
        await bench.command('Code Interpreter: Analyze File');
        await bench.notification('is analyzed as it is on disk').waitFor();
        await bench.screenshot('edges-large-said');
        await bench.shows('body', /The first 100000 rows of large\.csv/);
        await bench.idle();
        await bench.screenshot('edges-large');
        await bench.command('View: Close All Editors');
      },
      'a chart is saved where the person says': async (bench) => {
        await bench.open('sales.csv');
        await bench.command('Code Interpreter: Analyze File');
        await bench.hasPixels('img[src*="artifacts"]', 500);
        await bench.idle();
        await bench.showRuns();
        const row = bench.row('sales.csv');
        await bench.unfold(row);
        const to = path.join(bench.folder, 'saved chart.png');
        const chart = bench.row('chart-1.png');
        await chart.hover();
        await clickUntil(chart.locator('.action-label[aria-label*="Save Artifact"]'), {}, () => seen(bench.quickInput()));
        await bench.screenshot('edges-save');
        await answerPath(bench, to);
        await bench.until('the saved chart', () => existsSync(to));
        assert.equal(readFileSync(to).subarray(1, 4).toString(), 'PNG');
      },
      'an exported notebook opens as a notebook': async (bench) => {
        await bench.open('sales.csv');
        await bench.command('Code Interpreter: Export…');
        // Which run, where there are several.
        const notebook = bench.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Jupyter notebook' });
        if (!(await seen(notebook, 2_000))) {
          await bench.pick('sales.csv');
        }
        await bench.pick('Jupyter notebook');
        const to = path.join(bench.folder, 'exported.ipynb');
        await answerPath(bench, to);
        await bench.focusedTab('exported.ipynb').waitFor();
        await bench.page.locator('.notebookOverlay .view-line', { hasText: 'import pandas' }).first().waitFor();
        await bench.screenshot('edges-notebook');
        const cells = (JSON.parse(readFileSync(to, 'utf8')) as { cells: unknown[] }).cells;
        assert.ok(cells.length > 1);
      },
      'two windows on one folder share the history, and one that is closed in the middle of a run leaves nothing running': async (bench) => {
        await bench.open('months.csv');
        await bench.ask('Code Interpreter: Ask About File…', 'mean revenue by region');
        await bench.tab('months.csv.md').waitFor();
        await bench.idle();
        const others = serverPids(bench.editor, parts.binary);
        const second = await bench.another();
        await second.showRuns();
        await clickUntil(second.row('mean revenue by region'), {}, () => seen(second.activeTab('months.csv.md')));
        await second.shows('img[src*="artifacts"]');
        await second.open('prices.csv');
        await second.ask('Code Interpreter: Ask About File…', 'mean price');
        await second.shows('body', /price/);
        await second.idle();
        await second.screenshot('edges-two-windows');
        await bench.showRuns();
        await bench.command('Code Interpreter: Refresh');
        await bench.row('mean price').waitFor();
        await second.open('wait.py');
        await second.clickLine('sleep');
        await second.page.keyboard.press('Control+a');
        await second.command('Code Interpreter: Run Selection in Sandbox');
        await second.shows('code, pre', 'sleep');
        const started = serverPids(bench.editor, parts.binary).filter((pid) => !others.includes(pid)).flatMap(family);
        assert.ok(started.length > 1, 'the server and its sandbox');
        await second.close();
        await bench.until('the end of the server and of its sandbox', () => !started.some(runs));
      },
      'without an engine the setting docker says what to do': async (bench) => {
        bench.editor.changeSettings({ 'codeinterp.sandbox.backend': 'docker' });
        const restart = bench.notification('take effect when its server starts again').locator('.monaco-button', { hasText: 'Restart Now' });
        // A kernel is at work: nothing is lost without a word.
        if (await seen(restart)) {
          await clickUntil(restart, {}, () => gone(restart));
        }
        await bench.open('prices.csv');
        await bench.command('Code Interpreter: Analyze File');
        await bench.shows('body', /does not answer[^]*sandbox\.backend/);
        await bench.idle();
        await bench.screenshot('edges-no-docker');
      },
    },
  };
}

/** Types a path into the dialog that asks for a file, and leaves it. */
async function answerPath(bench: Workbench, file: string): Promise<void> {
  const input = bench.quickInput();
  const says = async (value: RegExp): Promise<boolean> => value.test(await input.inputValue({ timeout: ATTEMPT }));
  // The dialog fills in its proposal a moment after it came up.
  await eventually('a dialog for files', () => says(/^\//));
  await eventually(`the dialog for ${file}`, async () => {
    await input.fill(file, { timeout: ATTEMPT });
    await settle(bench.page, 300);
    if (!(await says(new RegExp(`${path.basename(file)}$`)))) {
      return false;
    }
    await input.press('Enter', { timeout: ATTEMPT });
    return gone(input);
  });
}

/** Closes the editor in front, whose text was never saved. */
async function discard(bench: Workbench): Promise<void> {
  await bench.command('View: Revert and Close Editor');
}

/** A table of at least so many bytes. */
function table(bytes: number): string {
  const rows = ['id,region,amount'];
  for (let length = 0, id = 1; length < bytes; id += 1) {
    const row = `${id},${['North', 'South', 'East', 'West'][id % 4] ?? ''},${((id * 7919) % 100_000) / 100}`;
    rows.push(row);
    length += row.length + 1;
  }
  return `${rows.join('\n')}\n`;
}
