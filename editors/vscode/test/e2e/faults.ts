/**
 * What goes wrong: no server, an old one, one that dies, a run that never ends, a workspace that is not trusted.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import * as path from 'node:path';
import type { Group } from './group';
import type { Parts } from './parts';
import { ATTEMPT, clickUntil, eventually, gone, seen } from './patience';
import { scripted, TABLE } from './scripted';
import { Workbench } from './workbench';

/** Scenarios by setup. */
export function faults(parts: Parts): Group[] {
  const trusted = scripted(parts);
  const untrusted = scripted(parts, { untrusted: true });
  return [
    {
      name: 'faults',
      start: () => Workbench.start(parts, trusted),
      scenarios: {
        'a run is cancelled, and no spinner stays': async (bench) => {
          await bench.open('sales.csv');
          await bench.ask('Code Interpreter: Ask About File…', 'run forever');
          await bench.busy();
          await bench.notification('Analyzing').waitFor();
          await bench.screenshot('faults-running');
          await bench.command('Code Interpreter: Cancel Run');
          console.log(`        cancelled after ${await bench.idle()} ms`);
          await bench.notification('Analyzing').waitFor({ state: 'detached' });
        },
        'a run is cancelled by its notification': async (bench) => {
          await bench.open('sales.csv');
          await bench.ask('Code Interpreter: Ask About File…', 'run forever');
          const item = bench.notification('Analyzing');
          await clickUntil(item.locator('.monaco-button', { hasText: 'Cancel' }), {}, () => gone(item));
          await bench.idle();
        },
        'a server that dies starts again, and the history is there': async (bench) => {
          await bench.open('sales.csv');
          await bench.ask('Code Interpreter: Ask About File…', 'crash please');
          await bench.idle();
          await bench.ask('Code Interpreter: Ask About File…', 'and what now?');
          await bench.shows('img[alt="chart 1"]');
          await bench.showRuns();
          await bench.row('crash please').waitFor();
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
          await eventually('the palette', async () => {
            await bench.page.keyboard.press('F1');
            await bench.quickInput().fill('>Code Interpreter: Analyze File', { timeout: ATTEMPT });
            return seen(bench.page.locator('.quick-input-list .monaco-list-row', { hasNotText: 'recently used' }));
          });
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
          await bench.notification('There is no program at "/no/such/codeinterp"').waitFor();
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
          await bench.notification('has version 0.0.3; this extension needs 0.1.0').waitFor();
          await bench.screenshot('old-server');
        },
      },
    },
  ];
}
