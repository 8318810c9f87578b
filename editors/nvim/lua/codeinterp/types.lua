---@meta
--- Shapes of the language server's own requests and notifications. Nothing loads this file; it is for type
--- checkers and readers.

---@alias codeinterp.Status 'queued'|'running'|'completed'|'incomplete'|'failed'|'cancelled'

--- What every command that starts a run answers.
---@class codeinterp.Started
---@field run string
---@field document string URI of the report

--- Parameters of `codeinterp/runChanged`.
---@class codeinterp.RunChanged
---@field run string
---@field status codeinterp.Status
---@field step integer? number of the step that runs, from 1
---@field uri string? the file that was asked about
---@field document string URI of the report

---@class codeinterp.Artifact
---@field name string
---@field mime string
---@field path string absolute
---@field step integer?

--- An element of `codeinterp.listRuns`.
---@class codeinterp.ListedRun
---@field run string
---@field status codeinterp.Status
---@field question string?
---@field uri string?
---@field document string
---@field artifacts codeinterp.Artifact[]

--- An element of `codeinterp.variables`.
---@class codeinterp.Variable
---@field name string
---@field type string
---@field shape any
---@field bytes integer?
---@field repr string

---@class codeinterp.WorkspaceStatus
---@field uri string
---@field backend string?
---@field state string?
---@field kernel string?
---@field memory_bytes integer?
---@field cpu_percent number?
---@field runs any

--- Answer of `codeinterp.status`.
---@class codeinterp.ServerStatus
---@field version string
---@field model string
---@field workspaces codeinterp.WorkspaceStatus[]

--- A run as this editor knows it.
---@class codeinterp.Run: codeinterp.RunChanged
---@field client_id integer
---@field question string?

--- What `:CodeInterp` was called with.
---@class codeinterp.Call
---@field args string everything after the subcommand, as typed
---@field fargs string[] the same in words; a backslash keeps a space inside a word
---@field bang boolean
---@field range integer number of line numbers in the range, 0 to 2
---@field line1 integer
---@field line2 integer

---@class codeinterp.Subcommand
---@field impl fun(call: codeinterp.Call)
---@field complete? fun(lead: string, words: string[]): string[] candidates for the word being typed
---@field bang? boolean
---@field range? boolean
