/**
 * The process of a real VS Code that serves browsers: started on a folder with given settings, and ended with all it started.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { type Parts, root } from './parts';

/** How long an editor may take to end by itself, in milliseconds. */
const ENDING = 20_000;

/** What an editor is started with. */
export interface Setup {
  /** User settings, added to quiet ones. */
  settings: Record<string, unknown>;
  /** Environment of the editor, and so of the server. */
  env?: Record<string, string>;
  /** Files of the workspace, by relative path. */
  files: Record<string, string | Buffer>;
  /** Keep the question whether the workspace is trusted. */
  untrusted?: boolean;
  /** Packages of further extensions. */
  extensions?: string[];
  /** The language of the editor; English where none is named. */
  language?: string;
  /** Further arguments of the editor. */
  args?: string[];
}

const QUIET = {
  // Nothing fades in: what is there can be clicked, and pictures show it whole.
  'workbench.reduceMotion': 'on',
  'workbench.startupEditor': 'none',
  'workbench.colorTheme': 'Default Dark Modern',
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'window.commandCenter': false,
  'chat.disableAIFeatures': false,
  'chat.commandCenter.enabled': false,
  'extensions.ignoreRecommendations': true,
  'git.enabled': false,
  // What is selected in the explorer stays selected when a file opens late.
  'explorer.autoReveal': false,
  // What is typed stays unsaved, as on a desktop.
  'files.autoSave': 'off',
  'update.mode': 'none',
  'editor.minimap.enabled': false,
  'editor.hover.delay': 100,
};

/** A running editor. */
export class Editor {
  private constructor(
    /** Where browsers find it. */
    readonly address: string,
    /** The workspace folder. */
    readonly folder: string,
    /** Everything of this editor: data, extensions, workspace, the server's state. */
    readonly home: string,
    private readonly process: ChildProcess,
  ) {}

  /** Starts an editor with the packaged extension. */
  static async start(parts: Parts, setup: Setup): Promise<Editor> {
    const home = mkdtempSync(path.join(tmpdir(), 'codeinterp-vscode-'));
    const folder = path.join(home, 'workspace');
    for (const [name, content] of Object.entries(setup.files)) {
      const file = path.join(folder, name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, content);
    }
    const data = path.join(home, 'data');
    writeSettings(data, { ...QUIET, ...setup.settings });
    if (setup.language !== undefined) {
      installLanguage(data, setup.language);
    }
    const folders = ['--user-data-dir', data, '--extensions-dir', path.join(home, 'extensions')];
    for (const vsix of [path.join(root, 'codeinterp.vsix'), ...(setup.extensions ?? [])]) {
      const installed = spawnSync(parts.node, [parts.codeServer, ...folders, '--install-extension', vsix], { encoding: 'utf8' });
      if (installed.status !== 0) {
        throw new Error(`The extension could not be installed: ${installed.stdout}${installed.stderr}`);
      }
    }
    const language = setup.language === undefined ? [] : ['--locale', setup.language];
    const args = ['--auth', 'none', '--bind-addr', '127.0.0.1:0', ...folders, ...language, '--disable-telemetry', '--disable-update-check'];
    const child = spawn(parts.node, [parts.codeServer, ...args, ...(setup.untrusted === true ? [] : ['--disable-workspace-trust']), ...(setup.args ?? []), folder], {
      env: { ...process.env, XDG_STATE_HOME: path.join(home, 'state'), ...setup.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const editor = new Editor(await listening(child), folder, home, child);
    running.add(editor);
    return editor;
  }

  /** Changes settings while the editor runs, as a person does in the files. */
  changeSettings(changes: Record<string, unknown>): void {
    const data = path.join(this.home, 'data');
    const now = JSON.parse(readFileSync(path.join(data, 'Machine', 'settings.json'), 'utf8')) as Record<string, unknown>;
    writeSettings(data, { ...now, ...changes });
  }

  /** Ends it at once, for when the tests themselves are ended. */
  kill(): void {
    if (this.process.pid !== undefined) {
      signal(this.process.pid, 'SIGKILL');
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Ends the editor and everything it started, and removes its folders. */
  async stop(): Promise<void> {
    const { pid } = this.process;
    if (pid !== undefined && signal(pid, 'SIGTERM')) {
      // The extension host still writes while it ends: its folders go when the last process of the group has gone.
      const deadline = Date.now() + ENDING;
      while (signal(pid, 0) && Date.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      signal(pid, 'SIGKILL');
    }
    running.delete(this);
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Editors that were not stopped yet. */
const running = new Set<Editor>();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(name, () => {
    running.forEach((editor) => editor.kill());
    process.exit(1);
  });
}

/** Writes the settings of the person and of the machine: in a browser's editor each has files of its own. */
function writeSettings(data: string, settings: Record<string, unknown>): void {
  for (const kind of ['User', 'Machine']) {
    mkdirSync(path.join(data, kind), { recursive: true });
    writeFileSync(path.join(data, kind, 'settings.json'), JSON.stringify(settings));
  }
}

/**
 * Makes a language known to the editor as a language pack does: a registry in the data folder, and a file of translations.
 * It translates none of the editor's own texts; extensions bring theirs.
 */
function installLanguage(data: string, language: string): void {
  const translations = path.join(data, `${language}.json`);
  writeFileSync(translations, JSON.stringify({ contents: {} }));
  const pack = { hash: 'none', label: language, extensions: [{ extensionIdentifier: { id: `test.${language}` }, version: '1.0.0' }], translations: { vscode: translations } };
  writeFileSync(path.join(data, 'languagepacks.json'), JSON.stringify({ [language]: pack }));
}

/** Signals a process group; false when it has ended. */
function signal(group: number, what: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, what);
    return true;
  } catch {
    return false;
  }
}

/** The address that the editor tells once it listens. */
function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    const take = (data: Buffer): void => {
      output += data.toString();
      const address = /HTTP server listening on (http:\/\/[^\s/]+)/.exec(output)?.[1];
      if (address !== undefined) {
        resolve(address);
      }
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    child.once('exit', (code) => reject(new Error(`The editor ended (${code ?? 'killed'}): ${output}`)));
  });
}
