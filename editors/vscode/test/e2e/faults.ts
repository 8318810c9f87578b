/**
 * What goes wrong: no server, an old one, one that dies, a run that never ends, a workspace that is not trusted.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import * as path from 'node:path';
import type { Group } from './group';
import type { Parts } from './parts';
import { ATTEMPT, clickUntil, eventually, gone, seen } from './patience';
import { scripted, SCRIPTED_SERVER } from './scripted';
import { Workbench } from './workbench';

/** What goes wrong with a run, on an editor with the scripted server. */
export const interruptions: Group['scenarios'] = {
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
    await bench.showRuns();
    // The next server tells how the run ended.
    await bench.row('crash please · failed').waitFor();
    await bench.ask('Code Interpreter: Ask About File…', 'and what now?');
    await bench.shows('body', 'Asked: and what now?');
    await bench.row('and what now?').waitFor();
    await bench.screenshot('faults-restarted');
  },
};

/** Scenarios that need an editor of their own. */
export function faults(parts: Parts): Group[] {
  return [
    {
      name: 'untrusted',
      start: () => Workbench.start(parts, scripted(parts, { untrusted: true })),
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
      name: 'wrong server',
      start: () => Workbench.start(parts, scripted(parts, { settings: { 'codeinterp.server.path': '/no/such/codeinterp' }, env: { SCRIPTED_VERSION: '0.0.3' } })),
      scenarios: {
        'a missing program is named, with what to do': async (bench) => {
          await bench.notification('There is no program at "/no/such/codeinterp"').waitFor();
          await bench.page.locator('.notification-list-item .monaco-button', { hasText: 'Open Settings' }).waitFor();
          await bench.screenshot('no-server');
        },
        'an old program is refused, and both versions are named': async (bench) => {
          // Naming another program is enough: it is tried at once.
          bench.editor.changeSettings({ 'codeinterp.server.path': SCRIPTED_SERVER });
          await bench.notification('has version 0.0.3; this extension needs 0.1.0').waitFor();
          await bench.screenshot('old-server');
        },
      },
    },
  ];
}
