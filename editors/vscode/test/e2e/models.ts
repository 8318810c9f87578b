/**
 * The editor's own language models, provided by a test extension; VS Code asks for consent.
 */
import type { Setup } from './editor';
import type { Group } from './group';
import { withExtensions } from './packages';
import type { Parts } from './parts';
import { clickUntil, gone, seen } from './patience';
import { scripted, TABLE } from './scripted';
import { clickIn } from './webviews';
import { Workbench } from './workbench';

/** Scenarios with a model of the editor: the real program, and the scripted server for a refusal's exact words. */
export function models(parts: Parts): Group[] {
  const start = (setup: (more: Partial<Setup>) => Setup): Promise<Workbench> =>
    withExtensions(['language-model'], (extensions) => Workbench.start(parts, setup({ extensions, args: ['--enable-proposed-api', 'codeinterp-test.language-model'] })));
  const settings = { 'codeinterp.model': 'editor' };
  const real = {
    settings: { ...settings, 'codeinterp.server.path': parts.binary, 'codeinterp.sandbox.backend': 'process' },
    files: { 'sales.csv': TABLE },
  };
  const ask = async (bench: Workbench, consent: RegExp): Promise<void> => {
    await bench.open('sales.csv');
    await bench.ask('Code Interpreter: Ask About File…', 'chat about the table');
    const dialog = bench.page.locator('.monaco-dialog-box');
    await dialog.waitFor();
    await bench.screenshot(`models-consent-${consent.source.toLowerCase()}`);
    await clickUntil(dialog.locator('.monaco-button', { hasText: consent }), {}, () => gone(dialog));
  };
  return [
    {
      name: 'models',
      start: () => start((more) => ({ ...more, ...real })),
      scenarios: {
        "the editor's model answers once its use is allowed": async (bench) => {
          await ask(bench, /Allow/);
          await bench.shows('body', 'By rote: the table has as many rows');
          await clickIn(bench.page, 'summary', (frame) => seen(frame.locator('body', { hasText: 'rows 4' })));
          await bench.screenshot('models-answer');
        },
      },
    },
    {
      name: 'models refused',
      start: () => start((more) => scripted(parts, { ...more, settings })),
      scenarios: {
        'a refusal is told, and nothing hangs': async (bench) => {
          await ask(bench, /Cancel/);
          await bench.shows('body', 'was not allowed');
          await bench.screenshot('models-refused');
        },
      },
    },
  ];
}
