/**
 * The server's life: found, checked, started, watched, started again, stopped. Everybody else asks `Server` for a ready client.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { homedir } from 'node:os';
import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { Backoff } from './backoff';
import { openSettings } from './config';
import type { ServerCommands } from './lsp_ext';
import { locate } from './locate';
import { message } from './messages';
import { isSupported, MINIMUM, parseVersion } from './version';

/** What the status bar shows about the server. */
export type ServerState = 'stopped' | 'starting' | 'running' | 'failed';

/** How long `codeinterp --version` may take, in milliseconds. */
const VERSION_TIMEOUT = 10_000;

/** Builds a client around a process that `Server` spawns. */
export type ClientFactory = (spawnServer: () => Promise<ChildProcess>) => Promise<LanguageClient>;

/** A failure whose message was already shown to the person: callers stay silent about it. */
export class ShownError extends Error {}

/** Owns the client and the process behind it. */
export class Server implements vscode.Disposable {
  private readonly states = new vscode.EventEmitter<ServerState>();
  /** Fires after each change of `state`. */
  readonly onState = this.states.event;
  /** The binary in use, once found. */
  binary: string | undefined;
  /** The version that the binary told. */
  version: string | undefined;

  private current: ServerState = 'stopped';
  private client: LanguageClient | undefined;
  private starting: Promise<LanguageClient> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private readonly backoff = new Backoff();
  private stopping = false;
  private restarting: Promise<void> = Promise.resolve();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly createClient: ClientFactory,
    private readonly environment: () => Promise<Record<string, string>>,
  ) {}

  get state(): ServerState {
    return this.current;
  }

  /** A running client; starts the server where none runs. Rejects with `ShownError` when it can't be started. */
  async ready(): Promise<LanguageClient> {
    if (this.current === 'running' && this.client !== undefined) {
      return this.client;
    }
    clearTimeout(this.timer);
    this.starting ??= this.start().finally(() => (this.starting = undefined));
    return this.starting;
  }

  /** The running client, where there is one; starts nothing. */
  running(): LanguageClient | undefined {
    return this.current === 'running' ? this.client : undefined;
  }

  /** Runs one of the server's commands. */
  async execute<K extends keyof ServerCommands>(
    command: K,
    argument: ServerCommands[K][0],
    token?: vscode.CancellationToken,
  ): Promise<ServerCommands[K][1]> {
    const client = await this.ready();
    const params = { command, arguments: [argument] };
    // An `undefined` token would be taken for a second parameter.
    return token === undefined ? client.sendRequest('workspace/executeCommand', params) : client.sendRequest('workspace/executeCommand', params, token);
  }

  /** Stops and starts again, by a person's wish. */
  restart(): Promise<void> {
    const again = async (): Promise<void> => {
      await this.stop();
      this.backoff.reset();
      await this.ready();
    };
    // One after the other: two restarts at once would leave two servers.
    this.restarting = this.restarting.then(again, again);
    return this.restarting;
  }

  /** Asks the server to end, and waits for it. */
  async stop(): Promise<void> {
    clearTimeout(this.timer);
    await this.starting?.catch(() => undefined);
    const client = this.client;
    this.client = undefined;
    if (client === undefined) {
      return;
    }
    this.stopping = true;
    try {
      await client.stop(5_000);
    } catch (error) {
      this.log.warn(`The server did not stop cleanly: ${String(error)}`);
    } finally {
      this.stopping = false;
      this.setState('stopped');
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.states.dispose();
  }

  /** Called by the client's error handler when the connection is gone. */
  connectionClosed(): void {
    if (this.stopping || this.client === undefined) {
      return;
    }
    this.client = undefined;
    const delay = this.backoff.crashed(Date.now());
    if (delay === undefined) {
      this.setState('failed');
      this.log.error('The server ended too often and is not started again by itself.');
      void this.complain(vscode.l10n.t('The Code Interpreter server keeps ending unexpectedly. Its log tells why.'), 'restart');
      return;
    }
    this.log.warn(`The server ended unexpectedly; starting it again in ${delay} ms.`);
    this.setState('starting');
    this.timer = setTimeout(() => void this.ready().catch(() => undefined), delay);
  }

  private async start(): Promise<LanguageClient> {
    this.setState('starting');
    try {
      const binary = await this.find();
      await this.checkVersion(binary);
      const client = await this.createClient(() => this.spawn(binary));
      this.client = client;
      await client.start();
      this.backoff.started(Date.now());
      this.setState('running');
      return client;
    } catch (error) {
      // `connectionClosed` may have seen the end of the process before `start` failed: its timer must not fight with this.
      clearTimeout(this.timer);
      this.client = undefined;
      this.setState('failed');
      if (!(error instanceof ShownError)) {
        this.log.error(`The server could not be started: ${String(error)}`);
        void this.complain(vscode.l10n.t('The Code Interpreter server could not be started: {0}', message(error)), 'restart');
      }
      throw new ShownError(message(error));
    }
  }

  private async find(): Promise<string> {
    const setting = vscode.workspace.getConfiguration('codeinterp').get<string>('server.path', '').trim();
    const found = await locate({
      setting,
      extension: this.context.extensionPath,
      path: process.env['PATH'] ?? '',
      platform: process.platform,
      home: homedir(),
    });
    if ('binary' in found) {
      this.binary = found.binary;
      this.log.info(`Server: ${found.binary} (${found.from})`);
      return found.binary;
    }
    const text =
      setting === ''
        ? vscode.l10n.t(
            'The program "codeinterp" was not found: it is neither in this extension nor on PATH. Build it with "cargo install --path ." in a clone of the project, or name its path in the settings.',
          )
        : vscode.l10n.t('There is no program at "{0}", which the setting codeinterp.server.path names. Correct the path, or clear it to use the one on PATH.', setting);
    this.log.error(`${text} (${found.tried.join(', ')})`);
    void this.complain(text, 'path');
    throw new ShownError(text);
  }

  private async checkVersion(binary: string): Promise<void> {
    const output = await new Promise<string>((resolve, reject) => {
      execFile(binary, ['--version'], { timeout: VERSION_TIMEOUT, maxBuffer: 64 * 1024 }, (error, stdout) =>
        error === null ? resolve(stdout) : reject(new Error(`${binary} --version: ${error.message}`)),
      );
    });
    this.version = parseVersion(output);
    this.log.info(`Server version: ${this.version ?? 'unknown'}`);
    if (this.version === undefined || !isSupported(this.version)) {
      const text = vscode.l10n.t(
        'The program at "{0}" has version {1}; this extension needs {2} or newer. Update it with "cargo install --path ." in a fresh clone, or name another one in the settings.',
        binary,
        this.version ?? vscode.l10n.t('unknown'),
        MINIMUM,
      );
      void this.complain(text, 'path');
      throw new ShownError(text);
    }
  }

  private async spawn(binary: string): Promise<ChildProcess> {
    const child = spawn(binary, ['lsp'], {
      env: { ...process.env, ...(await this.environment()) },
      stdio: ['pipe', 'pipe', 'pipe'],
      cwd: homedir(),
    });
    child.stderr.setEncoding('utf8');
    child.on('exit', (code, signal) => this.log.info(`Server ended (${signal ?? code ?? 'unknown'}).`));
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    return child;
  }

  private async complain(text: string, remedy: 'path' | 'restart'): Promise<void> {
    const settings = vscode.l10n.t('Open Settings');
    const again = vscode.l10n.t('Try Again');
    const log = vscode.l10n.t('Show Log');
    const choice = await vscode.window.showErrorMessage(text, ...(remedy === 'path' ? [settings, again, log] : [again, log]));
    if (choice === settings) {
      await openSettings('codeinterp.server.path');
    } else if (choice === again) {
      await vscode.commands.executeCommand('codeinterp.restartServer');
    } else if (choice === log) {
      this.log.show();
    }
  }

  private setState(state: ServerState): void {
    if (this.current !== state) {
      this.current = state;
      void vscode.commands.executeCommand('setContext', 'codeinterp.server', state);
      this.states.fire(state);
    }
  }
}
