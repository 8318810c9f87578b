/**
 * Packages of the test extensions, built where a scenario needs one.
 */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { root } from './parts';

/** Packages extensions of `test/fixtures` for as long as `use` takes. */
export async function withExtensions<T>(names: readonly string[], use: (packages: string[]) => Promise<T>): Promise<T> {
  const packages = names.map((name) => path.join(tmpdir(), `codeinterp-${name}-${process.pid}.vsix`));
  try {
    names.forEach((name, i) => pack(path.join(root, 'test', 'fixtures', name), packages[i] ?? ''));
    return await use(packages);
  } finally {
    packages.forEach((file) => rmSync(file, { force: true }));
  }
}

function pack(folder: string, vsix: string): void {
  const vsce = path.join(root, 'node_modules', '@vscode', 'vsce', 'vsce');
  const packed = spawnSync(process.execPath, [vsce, 'package', '--no-dependencies', '--allow-missing-repository', '--skip-license', '--out', vsix], { cwd: folder, encoding: 'utf8' });
  if (packed.status !== 0) {
    throw new Error(`The test extension ${folder} could not be packaged: ${packed.stdout}${packed.stderr}`);
  }
}
