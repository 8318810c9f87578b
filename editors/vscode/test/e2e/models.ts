/**
 * The editor's own language models, provided by a test extension; VS Code asks for consent.
 */
import type { Setup } from './editor';
import type { Group } from './group';
import { withExtensions } from './packages';
import type { Parts } from './parts';
import { clickUntil, gone, seen } from './patience';
import { serverPids } from './processes';
import { scripted } from './scripted';
import { clickIn } from './webviews';
import { Workbench } from './workbench';

/** Scenarios with a model of the editor: the scripted server for a refusal's exact words, then the real program. */
export function models(parts: Parts): Group {
  const setup = (extensions: string[]): Setup =>
    scripted(parts, { settings: { 'codeinterp.model': 'editor', 'codeinterp.sandbox.backend': 'process' }, extensions, args: ['--enable-proposed-api', 'codeinterp-test.language-model'] });
  const ask = async (bench: Workbench, consent: RegExp): Promise<void> => {
    await bench.open('sales.csv');
    await bench.ask('Code Interpreter: Ask About File…', 'chat about the table');
    const dialog = bench.page.locator('.monaco-dialog-box');
    await dialog.waitFor();
    await bench.screenshot(`models-consent-${consent.source.toLowerCase()}`);
    await clickUntil(dialog.locator('.monaco-button', { hasText: consent }), {}, () => gone(dialog));
  };
  return {
    name: 'models',
    start: () => withExtensions(['language-model'], (extensions) => Workbench.start(parts, setup(extensions))),
    scenarios: {
      'a refusal is told, and nothing hangs': async (bench) => {
        await ask(bench, /Cancel/);
        await bench.shows('body', 'was not allowed');
        await bench.idle();
        await bench.screenshot('models-refused');
      },
      "the editor's model answers once its use is allowed": async (bench) => {
        bench.editor.changeSettings({ 'codeinterp.server.path': parts.binary });
        await bench.until('the real program', () => serverPids(bench.editor, parts.binary).length > 0);
        await ask(bench, /Allow/);
        await bench.shows('body', 'By rote: the table has as many rows');
        await clickIn(bench.page, 'summary', (frame) => seen(frame.locator('body', { hasText: 'rows 4' })));
        await bench.screenshot('models-answer');
      },
    },
  };
}
