/**
 * The editor's own language models, provided by a test extension; VS Code asks for consent.
 */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import type { Group } from './group';
import { type Parts, root } from './parts';
import { scripted, TABLE } from './scripted';
import { type Setup, Workbench } from './workbench';

/** Scenarios with a model of the editor: the real program, and the scripted server for a refusal's exact words. */
export function models(parts: Parts): Group[] {
  const start = async (setup: (more: Partial<Setup>) => Setup): Promise<Workbench> => {
    const vsix = packModel();
    const bench = await Workbench.start(parts, setup({ extensions: [vsix], args: ['--enable-proposed-api', 'codeinterp-test.language-model'] }));
    rmSync(vsix);
    return bench;
  };
  const settings = { 'codeinterp.model': 'editor' };
  const real = {
    settings: { ...settings, 'codeinterp.server.path': parts.binary, 'codeinterp.sandbox.backend': 'process' },
    files: { 'sales.csv': TABLE },
  };
  const ask = async (bench: Workbench, consent: RegExp): Promise<void> => {
    await bench.open('sales.csv');
    await bench.command('Code Interpreter: Ask About File…');
    await bench.answer('chat about the table');
    const dialog = bench.page.locator('.monaco-dialog-box');
    await dialog.waitFor();
    await bench.screenshot(`models-consent-${consent.source.toLowerCase()}`);
    await dialog.locator('.monaco-button', { hasText: consent }).click();
  };
  return [
    {
      name: 'models',
      start: () => start((more) => ({ ...more, ...real })),
      scenarios: {
        "the editor's model answers once its use is allowed": async (bench) => {
          await ask(bench, /Allow/);
          const report = await bench.frameWith('h1');
          await report.locator('body', { hasText: 'By rote: the table has as many rows' }).waitFor();
          await report.locator('summary').first().click();
          await report.locator('body', { hasText: 'rows 4' }).waitFor();
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
          const report = await bench.frameWith('h1');
          await report.locator('body', { hasText: 'was not allowed' }).waitFor();
          await bench.screenshot('models-refused');
        },
      },
    },
  ];
}

function packModel(): string {
  const vsix = path.join(tmpdir(), `codeinterp-language-model-${process.pid}.vsix`);
  const vsce = path.join(root, 'node_modules', '@vscode', 'vsce', 'vsce');
  const packed = spawnSync(process.execPath, [vsce, 'package', '--no-dependencies', '--allow-missing-repository', '--skip-license', '--out', vsix], {
    cwd: path.join(root, 'test', 'fixtures', 'language-model'),
    encoding: 'utf8',
  });
  if (packed.status !== 0) {
    throw new Error(`The test extension could not be packaged: ${packed.stdout}${packed.stderr}`);
  }
  return vsix;
}
