/**
 * The read-only file system behind `codeinterp:`. Texts (reports, steps) come from the server by the same request that any
 * LSP client uses; artifacts are read from where the server keeps them.
 */
import { readFile, stat } from 'node:fs/promises';
import * as vscode from 'vscode';
import { type Artifact, methods, SCHEME } from './lsp_ext';
import type { Runs } from './runs';
import type { Server } from './server';
import { parsePath, serverPath, type Target } from './uris';

/** Artifacts larger than this (bytes) are not loaded into the editor; they can be saved. */
const ARTIFACT_LIMIT = 256 * 1024 * 1024;
/** Changes of a streaming report are announced at most this often, in milliseconds. */
const REFRESH = 200;

interface Text {
  bytes: Uint8Array;
  mtime: number;
  /** The server may have a newer text. */
  stale: boolean;
}

/** Serves `codeinterp:` documents. */
export class VirtualFs implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changes.event;

  /** Texts by the server's path. */
  private readonly texts = new Map<string, Text>();
  /** How often each run's texts were said to have changed: tells an answer that was overtaken. */
  private readonly generations = new Map<string, number>();
  /** URIs that an editor or preview has asked for, by the server's path. */
  private readonly seen = new Map<string, Set<string>>();
  /** Paths whose text ends with one more empty line. */
  private readonly touched = new Set<string>();
  private readonly dirty = new Set<string>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly server: Server,
    private readonly runs: Runs,
    private readonly reloadRuns: () => Promise<void>,
  ) {}

  dispose(): void {
    clearTimeout(this.timer);
    this.changes.dispose();
  }

  /** Notes that a run's texts may have changed; editors that show them read again soon. */
  runChanged(run: string): void {
    this.generations.set(run, this.generation(run) + 1);
    for (const path of this.texts.keys()) {
      if (path.startsWith(`/runs/${run}/`)) {
        this.pathChanged(path);
      }
    }
  }

  /** Notes that everything may have changed: another server answers now. */
  allChanged(): void {
    for (const path of this.texts.keys()) {
      this.pathChanged(path);
    }
  }

  /** Notes that one document may have changed. */
  documentChanged(uri: vscode.Uri): void {
    const target = parsePath(uri.path);
    if (target !== undefined && target.kind !== 'artifact') {
      this.generations.set(target.run, this.generation(target.run) + 1);
      this.pathChanged(serverPath(target));
    }
  }

  /**
   * Takes a document that has just been opened. A change announced between its reading and its opening reaches nobody in
   * VS Code, so that it is announced again.
   */
  opened(document: vscode.TextDocument): void {
    const target = document.uri.scheme === SCHEME ? parsePath(document.uri.path) : undefined;
    if (target === undefined || target.kind === 'artifact') {
      return;
    }
    const path = serverPath(target);
    const text = this.texts.get(path);
    if (text !== undefined && (text.stale || Buffer.from(text.bytes).toString('utf8') !== document.getText())) {
      this.pathChanged(path);
    }
  }

  /** Changes a report by an empty line at its end, so that whoever shows it renders it anew. */
  touchReport(run: string): void {
    const path = serverPath({ kind: 'report', run });
    if (!this.touched.delete(path)) {
      this.touched.add(path);
    }
    this.pathChanged(path);
  }

  watch(): vscode.Disposable {
    // Every change is announced anyway: there is nothing to watch.
    return new vscode.Disposable(() => undefined);
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const target = this.target(uri);
    const permissions = vscode.FilePermission.Readonly;
    if (target.kind === 'artifact') {
      const { path } = await this.artifact(uri, target.run, target.name);
      const found = await stat(path).catch(() => {
        throw vscode.FileSystemError.FileNotFound(uri);
      });
      return { type: vscode.FileType.File, ctime: found.ctimeMs, mtime: found.mtimeMs, size: found.size, permissions };
    }
    const text = await this.text(uri, target);
    return { type: vscode.FileType.File, ctime: 0, mtime: text.mtime, size: text.bytes.length, permissions };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    const target = this.target(uri);
    if (target.kind !== 'artifact') {
      return (await this.text(uri, target)).bytes;
    }
    const { path } = await this.artifact(uri, target.run, target.name);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined || !found.isFile()) {
      throw vscode.FileSystemError.FileNotFound(uri);
    }
    if (found.size > ARTIFACT_LIMIT) {
      throw vscode.FileSystemError.Unavailable(vscode.l10n.t('{0} is too large to open here. Save it to a file instead.', target.name));
    }
    return readFile(path);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  writeFile(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  createDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  /** An artifact's row; asks the server once more for a name that is not known yet. */
  async artifact(uri: vscode.Uri, run: string, name: string): Promise<Artifact> {
    const find = (): Artifact | undefined => this.runs.get(run)?.artifacts.find((artifact) => artifact.name === name);
    const known = find();
    if (known !== undefined) {
      return known;
    }
    await this.server.ready();
    await this.reloadRuns();
    const found = find();
    if (found === undefined) {
      throw vscode.FileSystemError.FileNotFound(uri);
    }
    return found;
  }

  private target(uri: vscode.Uri): Target {
    const target = parsePath(uri.path);
    if (target === undefined) {
      throw vscode.FileSystemError.FileNotFound(uri);
    }
    return target;
  }

  private async text(uri: vscode.Uri, target: Exclude<Target, { kind: 'artifact' }>): Promise<Text> {
    const path = serverPath(target);
    const uris = this.seen.get(path) ?? new Set<string>();
    this.seen.set(path, uris.add(uri.toString()));
    const known = this.texts.get(path);
    if (known !== undefined && !known.stale) {
      return known;
    }
    const client = await this.server.ready().catch(() => {
      throw vscode.FileSystemError.Unavailable(vscode.l10n.t('The Code Interpreter server is not running.'));
    });
    const asked = this.generation(target.run);
    let answer: { text: string };
    try {
      const document = vscode.Uri.from({ scheme: SCHEME, path }).toString();
      answer = await client.sendRequest(methods.textDocumentContent, { uri: document });
    } catch (error) {
      this.texts.delete(path);
      throw vscode.FileSystemError.FileNotFound(error instanceof Error ? error.message : uri);
    }
    const bytes = Buffer.from(this.touched.has(path) ? `${answer.text}\n` : answer.text, 'utf8');
    const before = this.texts.get(path);
    const same = before !== undefined && Buffer.compare(bytes, before.bytes) === 0;
    // Strictly later than before: VS Code reads again only when the time has moved on.
    const text = { bytes, mtime: same ? before.mtime : Math.max(Date.now(), (before?.mtime ?? 0) + 1), stale: false };
    this.texts.set(path, text);
    if (this.generation(target.run) !== asked) {
      // It changed while the server wrote its answer: whoever got this text has to ask again.
      this.pathChanged(path);
    }
    return text;
  }

  private generation(run: string): number {
    return this.generations.get(run) ?? 0;
  }

  private pathChanged(path: string): void {
    const text = this.texts.get(path);
    if (text === undefined) {
      return;
    }
    text.stale = true;
    this.dirty.add(path);
    this.timer ??= setTimeout(() => this.announce(), REFRESH);
  }

  private announce(): void {
    this.timer = undefined;
    const uris = [...this.dirty].flatMap((path) => [...(this.seen.get(path) ?? [])]);
    this.dirty.clear();
    this.changes.fire(uris.map((uri) => ({ type: vscode.FileChangeType.Changed, uri: vscode.Uri.parse(uri) })));
  }
}
