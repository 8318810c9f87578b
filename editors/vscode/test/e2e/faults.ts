/**
 * What goes wrong: no server, an old one, one that dies, a run that never ends, a workspace that is not trusted.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import * as path from 'node:path';
import type { Group } from './group';
import type { Parts } from './parts';
import { scripted, TABLE } from './scripted';
import { Workbench } from './workbench';

/** Scenarios by setup. */
export function faults(parts: Parts): Group[] {
  const trusted = scripted(parts);
  const untrusted = scripted(parts, { untrusted: true });
  const notification = (bench: Workbench, text: string): Promise<void> =>
    bench.page.locator('.notification-list-item', { hasText: text }).first().waitFor();
  return [
    {
      name: 'faults',
      start: () => Workbench.start(parts, trusted),
      scenarios: {
        'a run is cancelled within two seconds, and no spinner stays': async (bench) => {
          await bench.open('sales.csv');
          await bench.command('Code Interpreter: Ask About File…');
          await bench.answer('run forever');
          await bench.statusItem().locator('.codicon-loading').waitFor();
          await notification(bench, 'Analyzing');
          await bench.screenshot('faults-running');
          await bench.command('Code Interpreter: Cancel Run');
          await bench.statusItem().locator('.codicon-loading').waitFor({ state: 'detached', timeout: 2_000 });
          await bench.page.locator('.notification-list-item', { hasText: 'Analyzing' }).waitFor({ state: 'detached' });
        },
        'a run is cancelled by its notification': async (bench) => {
          await bench.command('Code Interpreter: Ask About File…');
          await bench.answer('run forever');
          const item = bench.page.locator('.notification-list-item', { hasText: 'Analyzing' });
          await item.locator('.monaco-button', { hasText: 'Cancel' }).click();
          await bench.statusItem().locator('.codicon-loading').waitFor({ state: 'detached', timeout: 2_000 });
        },
        'a server that dies starts again, and the history is there': async (bench) => {
          await bench.command('Code Interpreter: Ask About File…');
          await bench.answer('crash please');
          await bench.statusItem().locator('.codicon-loading').waitFor({ state: 'detached' });
          await bench.command('Code Interpreter: Ask About File…');
          await bench.answer('and what now?');
          await (await bench.frameWith('img[alt="chart 1"]')).locator('img').first().waitFor();
          await bench.page.locator('.activitybar .action-item [aria-label^="Code Interpreter"]').first().click();
          await bench.page.locator('.monaco-list-row', { hasText: 'run forever' }).first().waitFor();
          await bench.screenshot('faults-restarted');
        },
      },
    },
    {
      name: 'untrusted',
      start: () => Workbench.start(parts, untrusted),
      scenarios: {
        'nothing runs in a workspace that is not trusted': async (bench) => {
          await bench.page.locator('.statusbar', { hasText: 'Restricted Mode' }).waitFor();
          await bench.explorerRow('sales.csv').waitFor();
          await bench.page.keyboard.press('F1');
          await bench.page.locator('.quick-input-widget input[type=text]').fill('>Code Interpreter: Analyze File');
          await bench.page.locator('.quick-input-list .monaco-list-row', { hasNotText: 'recently used' }).first().waitFor();
          assert.equal(await bench.page.locator('.quick-input-list', { hasText: 'Code Interpreter: Analyze File' }).count(), 0);
          await bench.screenshot('untrusted');
          assert.equal(await bench.statusItem().count(), 0);
          assert.equal(existsSync(path.join(bench.folder, '..', 'state', 'scripted')), false);
        },
      },
    },
    {
      name: 'no server',
      start: () => Workbench.start(parts, { settings: { 'codeinterp.server.path': '/no/such/codeinterp' }, files: { 'sales.csv': TABLE } }),
      scenarios: {
        'a missing program is named, with what to do': async (bench) => {
          await notification(bench, 'There is no program at "/no/such/codeinterp"');
          await bench.page.locator('.notification-list-item .monaco-button', { hasText: 'Open Settings' }).waitFor();
          await bench.screenshot('no-server');
        },
      },
    },
    {
      name: 'old server',
      start: () => Workbench.start(parts, scripted(parts, { env: { SCRIPTED_VERSION: '0.0.3' } })),
      scenarios: {
        'an old program is refused, and both versions are named': async (bench) => {
          await notification(bench, 'has version 0.0.3; this extension needs 0.1.0');
          await bench.screenshot('old-server');
        },
      },
    },
  ];
}
