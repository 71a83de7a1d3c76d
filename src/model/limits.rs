//! Every bound and timeout, each with its unit and its reason. Must not hold anything that a user sets; those defaults
//! stand here, their settings in `config`.

use std::time::Duration;

/// Longest line, in bytes, that either side may send. Real results reach some 20 MiB (images, exports).
pub const LINE_BYTES: usize = 64 << 20;
/// Bytes waiting for one upstream to read before further calls are refused: two of the longest lines.
pub const UPSTREAM_QUEUE_BYTES: usize = 128 << 20;
/// Bytes waiting for the client to read before upstream readers wait.
pub const CLIENT_QUEUE_BYTES: usize = 128 << 20;
/// Small messages are joined into one write up to this many bytes: one pipe buffer.
pub const WRITE_BATCH_BYTES: usize = 64 << 10;
/// Bytes asked for in one read: one pipe buffer.
pub const READ_CHUNK_BYTES: usize = 64 << 10;
/// A line buffer above this size is given back once it is empty.
pub const IDLE_BUFFER_BYTES: usize = 1 << 20;

/// Wait for a connection to an upstream over HTTP.
pub const HTTP_CONNECT: Duration = Duration::from_secs(10);
/// A connection to an upstream over HTTP that is not used is kept this long: less than servers usually keep theirs (Node
/// 5 s, most others a minute), so that few requests meet one that is just being closed.
pub const HTTP_IDLE: Duration = Duration::from_secs(4);
/// Bytes read of a body that only says why a request was refused.
pub const HTTP_ERROR_BYTES: usize = 64 << 10;
/// Requests to one upstream over HTTP that are on their way at once; further ones wait in its queue.
pub const HTTP_IN_FLIGHT: usize = 1_024;
/// Wait for the end of a stream that has brought its answer, so that its connection can be used again.
pub const STREAM_END: Duration = Duration::from_millis(500);
/// Pause before a stream that ended is opened again, where the server names none.
pub const STREAM_PAUSE: Duration = Duration::from_secs(1);
/// Longest such pause.
pub const STREAM_PAUSE_MOST: Duration = Duration::from_secs(60);
/// An answer's stream is taken up again so often without anything new on it.
pub const STREAM_RESUMES: usize = 5;

/// Bytes waiting on the stream of one request over HTTP before it is given up, and one message of any size after them.
pub const STREAM_QUEUE_BYTES: usize = 4 << 20;
/// Bytes that nobody asked for waiting for a session's stream before the oldest go; many sessions never open one.
pub const UNSOLICITED_BYTES: usize = 256 << 10;
/// Bytes of sent events that a stream keeps for a client that lost its connection.
pub const REPLAY_BYTES: usize = 256 << 10;
/// Bytes that a session keeps of streams that ended: what was written last may have gone into a dead connection.
pub const REPLAY_ENDED_BYTES: usize = 256 << 10;
/// Streams of one session that can be taken up again.
pub const STREAMS: usize = 16;
/// A comment goes over a silent stream this often; what stands between closes silent connections after a minute.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Connections of clients at once.
pub const CONNECTIONS: usize = 8_192;
/// Sessions of the older era at once.
pub const SESSIONS: usize = 10_000;
/// A session that is not used for this long ends.
pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// The part of all sessions that one of many callers may have: one in so many.
pub const SESSION_SHARE: usize = 10;
/// How often idle sessions are looked for.
pub const SESSION_SWEEP: Duration = Duration::from_secs(30);
/// Headers of one request, and their bytes.
pub const HEADERS: usize = 100;
/// Bytes of one request's headers, and of one read of its body.
pub const HEADER_BYTES: usize = 64 << 10;
/// A client has this long to send a request's headers.
pub const HEADER_WAIT: Duration = Duration::from_secs(30);
/// A client has this long to send a request's body.
pub const BODY_WAIT: Duration = Duration::from_secs(120);
/// Pause after a connection could not be accepted.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Characters of a caller's name: mail addresses have up to 254.
pub const PRINCIPAL_CHARS: usize = 256;
/// Bytes of a bearer token. A JWT with the groups of a large directory has some 8 KiB; more fits into no header elsewhere.
pub const BEARER_BYTES: usize = 16 << 10;
/// Clocks of an issuer and of this machine may differ by this much.
pub const JWT_LEEWAY: Duration = Duration::from_secs(30);
/// Keys of an issuer are fetched anew after this long, so that one that it withdrew is soon refused.
pub const JWKS_FRESH: Duration = Duration::from_secs(10 * 60);
/// Keys are used for this long where newer ones cannot be fetched: tokens live an hour, and an issuer that is down gives
/// out none.
pub const JWKS_KEPT: Duration = Duration::from_secs(3_600);
/// Between two fetches, whatever is asked: anybody can send a token with a key that nobody knows.
pub const JWKS_PAUSE: Duration = Duration::from_secs(5);
/// Wait for an issuer's metadata, and for its keys.
pub const JWKS_WAIT: Duration = Duration::from_secs(5);
/// Bytes of an issuer's metadata or keys. The largest public sets have some 20 KiB.
pub const JWKS_BYTES: usize = 256 << 10;
/// Keys of one issuer.
pub const JWKS_KEYS: usize = 100;
/// Bytes of the file of tokens: some ten thousand of them.
pub const TOKENS_BYTES: u64 = 4 << 20;
/// Bytes of the file of logins: some thousand of them.
pub const LOGINS_BYTES: u64 = 16 << 20;
/// How often it is looked whether those who have streams or sessions open may still come: a token that is revoked must be
/// of no use within a second.
pub const GRANT_SWEEP: Duration = Duration::from_millis(400);
/// Callers whose requests are counted at once: more than there are connections.
pub const COUNTED_CALLERS: usize = 10_000;

/// Connections to one upstream that sessions have for themselves; further sessions share one. Each may be a process.
pub const OWN_CONNECTIONS: usize = 256;
/// So many of them are of one caller, who may bring a new credential while calls with an older one are still open.
pub const OWN_PER_CALLER: usize = 4;
/// A connection that speaks by one caller's right is closed once nothing was asked over it for this long.
pub const OWN_IDLE: Duration = Duration::from_secs(10 * 60);

/// An upstream may ask for input this often during one call.
pub const INPUT_ROUNDS: usize = 16;

/// URIs that are remembered because a result named them and no list did.
pub const SEEN_URIS: usize = 10_000;
/// Tasks that are remembered with their upstream.
pub const TASKS: usize = 10_000;

/// Lines of an upstream's stderr that are kept.
pub const STDERR_LINES: usize = 64;
/// Bytes kept of one such line.
pub const STDERR_LINE_BYTES: usize = 500;
/// Stray lines on an upstream's stdout that are logged; the rest is counted.
pub const NOISE_LOGGED: usize = 20;

/// Wait for a whole handshake. Interpreters under load take 10 s and more to import.
pub const HANDSHAKE: Duration = Duration::from_secs(60);
/// Silence after `server/discover` before `initialize` is sent as well, on the same pipe. Python servers take 1.5 s to
/// import; the clients measured wait 2.9 s.
pub const PROBE_SILENCE: Duration = Duration::from_millis(3_000);
/// Upstreams of the older era are greeted after the client, so that they are told what it can do; at most this much later.
pub const CLIENT_SILENCE: Duration = Duration::from_millis(500);
/// Wait for one page of a list.
pub const LIST_PAGE: Duration = Duration::from_secs(30);
/// How long a modern client may keep what it is not told about, in milliseconds.
pub const CACHE_MS: u32 = 60_000;
/// Wait for one upstream's part of a list that is put together of several: a slow one must not cost the others theirs.
pub const OFFER_WAIT: Duration = Duration::from_secs(10);
/// Pages of one list: a thousand pages of ten tools are already more than any client takes.
pub const LIST_PAGES: usize = 1_000;
/// Tools of one upstream.
pub const UPSTREAM_TOOLS: usize = 20_000;
/// A call without answer or progress.
pub const CALL_IDLE: Duration = Duration::from_secs(300);
/// A call as a whole, progress or not.
pub const CALL_TOTAL: Duration = Duration::from_secs(3_600);
/// A server that tells of changes without a pause is asked again all the same after this long.
pub const LIST_STORM: Duration = Duration::from_secs(1);
/// A subscription to a server's changes is opened anew after this long.
pub const SUBSCRIPTION: Duration = Duration::from_secs(24 * 3_600);
/// Quiet after a server's `list_changed` before it is asked again.
pub const LIST_QUIET: Duration = Duration::from_millis(100);
/// How often deadlines are looked at.
pub const SWEEP: Duration = Duration::from_millis(500);
/// How long the first list waits for upstreams. The tightest client gives up after 5 s.
pub const START_WAIT: Duration = Duration::from_millis(2_000);
/// A call to an upstream that is just starting again waits this long for it.
pub const RESTART_WAIT: Duration = Duration::from_millis(900);

/// A call for which a connection is opened waits this long for it.
pub const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// Loading a skill whose upstream is still starting waits this long for its tools.
pub const LOAD_WAIT: Duration = Duration::from_secs(10);

/// First pause before a restart; doubles each time, so that a server that quits at once starts five times in 10 s.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(1_000);
/// Pause before the restart of a server that had been serving.
pub const BACKOFF_SERVED: Duration = Duration::from_millis(100);
/// Longest pause before a restart.
pub const BACKOFF_MOST: Duration = Duration::from_secs(60);
/// An upstream that ran this long starts again at the first pause.
pub const BACKOFF_RESET: Duration = Duration::from_secs(60);

/// After closing stdin, and again after SIGTERM, a child has this long to end.
pub const CHILD_GRACE: Duration = Duration::from_millis(1_500);
/// Calls in flight are waited for at the end.
pub const DRAIN: Duration = Duration::from_secs(10);

/// After the client's input ended, calls in flight have this long before they are cancelled.
pub const LAST_ANSWERS: Duration = Duration::from_millis(1_000);

/// Files that change are read once nothing changed for this long: an editor's save is some renames and writes within
/// milliseconds, a checkout some hundred files.
pub const FILE_QUIET: Duration = Duration::from_millis(200);
/// Files that change without a pause are read all the same this long after the first change.
pub const FILE_STORM: Duration = Duration::from_secs(2);
/// Files are looked at this often where the system tells of no changes.
pub const FILE_POLL: Duration = Duration::from_secs(2);
/// A file that changed this shortly before it was looked at may change again without looking other; the coarsest file
/// systems keep times in steps of two seconds.
pub const FILE_TIMES: Duration = Duration::from_secs(2);
/// Links that are followed on the way to one file.
pub const FILE_LINKS: usize = 16;

/// Frontmatter, in bytes. The longest of 15,601 public skills has about 8 KiB.
pub const FRONTMATTER_BYTES: usize = 64 << 10;
/// A SKILL.md, in bytes. The longest public one has 294,426.
pub const SKILL_BYTES: u64 = 1 << 20;
/// Files of one skill (the Skills extension's own limit).
pub const SKILL_FILES: usize = 512;
/// Bytes of one skill (the Skills extension's own limit).
pub const SKILL_TOTAL_BYTES: u64 = 16 << 20;
/// Bytes of one reference that is read into a result.
pub const REFERENCE_BYTES: u64 = 1 << 20;
/// Processes that write an audit of the same name, each into a file of its own.
pub const AUDIT_FILES: usize = 64;
/// Of the end of an audit that is looked at for its last record: arguments may be as long as a message.
pub const AUDIT_LINE_BYTES: u64 = 72 << 20;
/// Bytes of one file of the audit, where the config says nothing.
pub const AUDIT_BYTES: u64 = 64 << 20;
/// Files of the audit that are kept besides, where the config says nothing.
pub const AUDIT_KEPT: usize = 9;
/// Files that are imported at once: a repository of many skills, not one of software.
pub const IMPORT_FILES: usize = 4096;
/// Bytes that are imported at once, unpacked.
pub const IMPORT_BYTES: u64 = 64 << 20;
/// Bytes of one file that is imported.
pub const IMPORT_FILE_BYTES: u64 = 8 << 20;
/// Folders within each other that are imported.
pub const IMPORT_DEPTH: usize = 16;
/// Folders below a skills folder (the client guide's advice is 4 to 6); backups in public collections reach 6.
pub const SKILL_DEPTH: usize = 6;
/// Folders looked at below one skills folder, lest somebody name `/`. The largest public collections have some 15,000
/// skills, with their own folders for references and scripts some 60,000 folders.
pub const SKILL_FOLDERS: usize = 200_000;
/// Characters of a description (the standard's limit); longer ones are cut in the catalogue.
pub const DESCRIPTION_CHARS: usize = 1_024;
/// Characters of a description below which `skills lint` asks for more: a short sentence has some 40.
pub const SHORT_DESCRIPTION_CHARS: usize = 40;
/// Characters of a description within which it should say when to use the skill; some hosts show no more in their lists.
pub const TRIGGER_CHARS: usize = 250;
/// Characters of a body from which it should have headings: about a page.
pub const HEADING_CHARS: usize = 2_000;
/// Share of words in common from which two skills are nearly the same.
pub const TWIN_SHARE: f64 = 0.6;
/// Skills that one is compared with, of those that share one of its rarest words: of some thousand skills all of them.
pub const TWIN_CANDIDATES: usize = 3_000;
/// And after the first that is nearly the same: thousands made of one template are all alike.
pub const TWINS_COMPARED: usize = 200;
/// Characters of `compatibility` (the standard's limit).
pub const COMPATIBILITY_CHARS: usize = 500;

/// Longest exposed name: the strictest model API.
pub const NAME_CHARS: usize = 64;
/// Hosts cut descriptions and instructions here, in bytes.
pub const HOST_TEXT_BYTES: usize = 2_048;
/// Skill names are an enum in the schema up to this many.
pub const ENUM_ENTRIES: usize = 100;
/// An upstream with more tools than this becomes several auto skills.
pub const AUTO_SKILL_TOOLS: usize = 25;
/// Tokens of the catalogue.
pub const CATALOG_TOKENS: usize = 1_500;
/// Tags that are named with their counts where a catalogue has no room for its skills.
pub const CATALOG_TAGS: usize = 20;
/// Tokens of the index that is written to a file: a client loads it into every conversation.
pub const INDEX_TOKENS: usize = 1_000;
/// The smallest such index: its words for the agent, and some names.
pub const INDEX_TOKENS_LEAST: usize = 200;
/// The largest one.
pub const INDEX_TOKENS_MOST: usize = 100_000;
/// Bytes of the file of what clients were sent: some thousand sessions.
pub const SENT_FILE_BYTES: usize = 256 << 10;
/// How often it is written while sessions go on.
pub const SENT_EVERY: Duration = Duration::from_secs(60);
/// Sessions that ended and are not in the file yet; older ones go.
pub const SENT_ENDED: usize = 1_000;
/// Pause before the file is tried again that another process is just writing, and how often.
pub const SENT_PAUSE: Duration = Duration::from_millis(20);
/// See [`SENT_PAUSE`].
pub const SENT_TRIES: usize = 10;
/// Calls of the task that `gatekey budget` estimates: no context window holds more.
pub const BUDGET_CALLS_MOST: usize = 10_000;
/// Tokens by which a legacy session's list may grow.
pub const LIST_TOKENS: usize = 10_000;
/// A client that has not listed again this long after a change never will.
pub const RELIST: Duration = Duration::from_secs(2);
/// Skills in one answer of `skill_search`, unless it is told otherwise, and at most.
pub const SEARCH_HITS: usize = 5;
/// See [`SEARCH_HITS`].
pub const SEARCH_HITS_MOST: usize = 20;
/// Skills that are named as the nearest where none fits.
pub const SEARCH_NEAREST: usize = 2;
/// Searches at once; each takes some milliseconds of a core.
pub const SEARCHES: usize = 2;
/// Results of searches that are kept, for those who ask the same again.
pub const SEARCHES_KEPT: usize = 64;
/// What words count beside meaning in a search, chosen on the development sets (README).
pub const WORDS_WEIGHT: f32 = 1.0;
/// Full definitions in one `tool_describe`.
pub const DESCRIBE_TOOLS: usize = 10;
/// Names that one `tool_describe` looks up: each that is not open is answered with what to do.
pub const DESCRIBE_NAMES: usize = 100;
/// Closed tools that a search for tools names, with the skill that opens them.
pub const CLOSED_HITS: usize = 3;
/// Tools of a search that have no word of the query, only its meaning.
pub const MEANT_TOOLS: usize = 3;
/// Memory of a compiled regular expression, in bytes.
pub const REGEX_BYTES: usize = 1 << 20;
/// Parts of a tool's schema, references followed, up to which arguments are held against it. The largest public ones have
/// some thousand.
pub const SCHEMA_PARTS: usize = 20_000;
/// References that are followed one after the other in a schema.
pub const SCHEMA_REFERENCES: usize = 16;
/// Bytes of a tool's schema shown with an argument error.
pub const SCHEMA_HINT_BYTES: usize = 8 << 10;
/// Hits that a reranker looks at: at 10 ms each of a small model (6 layers), a fifth of a second.
pub const RERANKED_HITS: usize = 20;
