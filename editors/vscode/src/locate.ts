/**
 * Where the server's binary is: the setting, then the binary in the package, then `PATH`.
 */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import * as path from 'node:path';

/** Where to look. */
export interface Places {
  /** `codeinterp.server.path`; empty when not set. */
  setting: string;
  /** The extension's folder, which may carry `server/codeinterp`. */
  extension: string;
  /** The `PATH` variable. */
  path: string;
  platform: NodeJS.Platform;
  /** The home directory, for a leading `~`. */
  home: string;
}

/** A found binary, or all the places where none was. */
export type Found = { binary: string; from: 'setting' | 'bundled' | 'path' } | { tried: string[] };

/** Looks for the binary. A setting that names no executable is an error of its own: nothing else is tried behind a person's back. */
export async function locate(places: Places): Promise<Found> {
  if (places.setting !== '') {
    const binary = places.setting.replace(/^~(?=\/|\\|$)/, places.home);
    return (await isExecutable(binary)) ? { binary, from: 'setting' } : { tried: [binary] };
  }
  const name = places.platform === 'win32' ? 'codeinterp.exe' : 'codeinterp';
  const bundled = path.join(places.extension, 'server', name);
  if (await isExecutable(bundled)) {
    return { binary: bundled, from: 'bundled' };
  }
  const folders = places.path.split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  for (const folder of folders) {
    const binary = path.join(folder, name);
    if (await isExecutable(binary)) {
      return { binary, from: 'path' };
    }
  }
  return { tried: [bundled, 'PATH'] };
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
