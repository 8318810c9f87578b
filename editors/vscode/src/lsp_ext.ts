/**
 * The server's own surface: commands, notifications and requests beyond LSP. Mirrors `src/lsp/ext.rs`; change both together.
 */

/** The scheme of virtual documents: `codeinterp:/runs/<id>/report.md`. */
export const SCHEME = 'codeinterp';

/** Where a run stands. The last four are final: report, hints and artifacts can be read by then. */
export type RunStatus = 'queued' | 'running' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** True for a status that does not change any more. */
export function isFinal(status: RunStatus): boolean {
  return status !== 'queued' && status !== 'running';
}

/** A zero-based position; `character` counts UTF-16 code units. */
export interface Position {
  line: number;
  character: number;
}

/** A half-open range of a document. */
export interface Range {
  start: Position;
  end: Position;
}

/** A file that a run made: a chart, a table, a written file. */
export interface Artifact {
  name: string;
  mime: string;
  /** Absolute path on the server's host. */
  path: string;
  /** The step that made it, counted from 1. */
  step?: number | null;
}

/** One row of `codeinterp.listRuns`. */
export interface RunRow {
  run: string;
  status: RunStatus;
  question: string;
  /** The document asked about; none where the run was not about one. */
  uri?: string | null;
  /** The report. */
  document: string;
  artifacts: Artifact[];
}

/** Answer of every command that starts a run. */
export interface Started {
  run: string;
  document: string;
}

/** Parameters of `codeinterp/runChanged`. */
export interface RunChanged {
  run: string;
  status: RunStatus;
  /** The step being executed, counted from 1; 0 before the first. */
  step?: number | null;
  uri?: string | null;
  document: string;
}

/** One row of `codeinterp.variables`. */
export interface Variable {
  name: string;
  type: string;
  shape?: string | number[] | null;
  bytes?: number | null;
  repr: string;
}

/** One workspace folder of `codeinterp.status`. */
export interface WorkspaceStatus {
  uri: string;
  backend: string;
  state: string;
  kernel: string;
  memory_bytes?: number | null;
  cpu_percent?: number | null;
  runs: number;
}

/** Answer of `codeinterp.status`. */
export interface Status {
  version: string;
  model: string;
  workspaces: WorkspaceStatus[];
}

/** What a run is exported to. */
export type ExportFormat = 'notebook' | 'script' | 'markdown';

/** A tool call as the model made it. */
export interface ChatToolCall {
  name: string;
  arguments: unknown;
}

/** One turn of the conversation with the editor's model. */
export interface ChatMessage {
  role: string;
  content: string;
}

/** A tool that the server offers the model. */
export interface ChatTool {
  name: string;
  description?: string | null;
  /** JSON schema of the arguments; both names are in use among providers. */
  parameters?: object | null;
  inputSchema?: object | null;
}

/** Parameters of `codeinterp/chat`, server to client. */
export interface ChatParams {
  id: string | number;
  messages: ChatMessage[];
  tools?: ChatTool[] | null;
}

/** Result of `codeinterp/chat`. */
export interface ChatResult {
  text: string;
  toolCalls?: ChatToolCall[];
  finishReason: 'stop' | 'tool_calls' | 'length';
}

/** Names of the notifications and requests. */
export const methods = {
  runChanged: 'codeinterp/runChanged',
  chat: 'codeinterp/chat',
  chatDelta: 'codeinterp/chatDelta',
  textDocumentContent: 'workspace/textDocumentContent',
  textDocumentContentRefresh: 'workspace/textDocumentContent/refresh',
  cancelProgress: 'window/workDoneProgress/cancel',
} as const;

/** Arguments and answers of the server's commands (`workspace/executeCommand`, one object as the only argument). */
export interface ServerCommands {
  'codeinterp.analyzeFile': [{ uri: string; question?: string; files?: string[] }, Started];
  'codeinterp.askSelection': [{ uri: string; range: Range; question: string }, Started];
  'codeinterp.runSelection': [{ uri: string; range: Range }, Started];
  'codeinterp.followUp': [{ run: string; question: string }, Started];
  'codeinterp.rerun': [{ run: string }, Started];
  'codeinterp.cancel': [{ run?: string }, { cancelled: string[] }];
  'codeinterp.listRuns': [{ uri?: string }, RunRow[]];
  'codeinterp.saveArtifact': [{ run: string; name: string; to: string; overwrite?: boolean }, { path: string }];
  'codeinterp.export': [{ run: string; to: ExportFormat; path: string; overwrite?: boolean }, { path: string }];
  'codeinterp.variables': [{ uri?: string; name?: string }, Variable[]];
  'codeinterp.clearHints': [{ uri?: string }, unknown];
  'codeinterp.restartKernel': [{ uri?: string }, unknown];
  'codeinterp.stopSandbox': [{ uri?: string }, unknown];
  'codeinterp.status': [Record<string, never>, Status];
}
