//! What can be typed.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::model::limits::{BUDGET_CALLS_MOST, INDEX_TOKENS_LEAST, INDEX_TOKENS_MOST};

/// Load a skill, get its key, and the key opens the gate to that module's tools.
#[derive(Debug, Parser)]
#[command(name = "gatekey", version, arg_required_else_help = true, max_term_width = 100)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What every command takes.
#[derive(Debug, ClapArgs)]
pub(super) struct Common {
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// What goes to the log on stderr: error, warn, info, debug, trace, or a filter [default: warn for proxy, else error]
    #[arg(long, global = true, value_name = "LEVEL", env = "GATEKEY_LOG")]
    pub(super) log: Option<String>,
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
}

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Stand between clients and their servers, over stdio or HTTP
    Proxy(Proxy),
    /// Look at the upstreams and write a config, a gating map and drafts of skills
    Init(Init),
    /// Look at and try the tools of the upstreams
    Tools(Tools),
    /// Look at the skills
    Skills(Skills),
    /// Check config, gating maps, skills and names; exit 1 on findings
    Check(Check),
    /// Record what upstreams and skills are now, for reviews and for `check`
    Lock(Lock),
    /// Show what changed since it was recorded: texts, schemas, annotations, files; exit 1 on changes
    Diff(Diff),
    /// Say what each set of skills costs in tokens, against listing every tool
    Budget(Budget),
    /// Write the list of skills into a file that clients load, such as SKILLS-INDEX.md, and keep it fresh
    Index(Index),
    /// Look at what was decided and called
    Audit(AuditCommand),
    /// Make, list and revoke the tokens by which clients over HTTP are known
    Token(Token),
    /// Log in at a server that wants OAuth
    Login(Login),
    /// Forget a login
    Logout(Logout),
    /// Measure how well search finds the right skills, on a labelled set
    Eval(Eval),
    /// Print the JSON Schema of a file
    Schema {
        /// Which file
        of: SchemaOf,
    },
    /// Print a completion script
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

/// Which config and upstreams, and on whose behalf.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct Setup {
    /// An upstream: its name in the config, a URL, a command line, or a program on PATH (repeatable)
    #[arg(long = "upstream", value_name = "NAME|COMMAND|URL")]
    pub(super) upstreams: Vec<String>,
    /// Config file: gatekey.toml, or JSON in the clients' mcpServers shape [default: ./gatekey.toml, else the user's]
    #[arg(long, value_name = "FILE", env = "GATEKEY_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// Who is calling: a principal of the config, or any name, also as NAME:ROLE,ROLE
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(super) principal: Option<String>,
}

/// Stand between clients and their servers, over stdio or HTTP.
#[derive(Debug, ClapArgs)]
pub(super) struct Proxy {
    #[command(flatten)]
    pub(super) setup: Setup,
    /// Serve Streamable HTTP at this address instead of stdio: /mcp, and /skill/NAME/mcp with that skill already loaded
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) http: Option<String>,
    /// Serve everybody who reaches an address that is not this machine's own, without asking who they are
    #[arg(long, requires = "http")]
    pub(super) unauthenticated_network: bool,
}

/// Log in at a server that wants OAuth.
#[derive(Debug, ClapArgs)]
pub(super) struct Login {
    /// Its name in the config
    pub(super) upstream: String,
    /// Whose login it is, where each caller has one; without it that of gatekey itself, by which it lists
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(super) caller: Option<String>,
    /// Port of this machine that the authorization server sends the user back to [default: any]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(super) port: u16,
    /// Config file [default: ./gatekey.toml, else the user's]
    #[arg(long, value_name = "FILE", env = "GATEKEY_CONFIG")]
    pub(super) config: Option<PathBuf>,
}

/// Forget a login.
#[derive(Debug, ClapArgs)]
pub(super) struct Logout {
    /// Name of the server in the config
    pub(super) upstream: String,
    /// Whose login it is, where each caller has one
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(super) caller: Option<String>,
    /// Config file [default: ./gatekey.toml, else the user's]
    #[arg(long, value_name = "FILE", env = "GATEKEY_CONFIG")]
    pub(super) config: Option<PathBuf>,
}

/// Make, list and revoke the tokens by which clients over HTTP are known.
#[derive(Debug, ClapArgs)]
pub(super) struct Token {
    #[command(subcommand)]
    pub(super) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token and print it, this once only
    Add {
        /// Whose it is: a principal of the config, or any name
        name: String,
        /// What its holder is besides what the config says (repeatable)
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// When it expires: a number with s, m, h, d or w behind it [default: never]
        #[arg(long, value_name = "TIME", value_parser = super::token::parse_time)]
        expires: Option<std::time::Duration>,
        /// Config file that names the file of tokens [default: ./gatekey.toml, else the user's]
        #[arg(long, value_name = "FILE", env = "GATEKEY_CONFIG")]
        config: Option<PathBuf>,
    },
    /// List the tokens: whose they are, since when and until when
    List {
        /// Config file that names the file of tokens [default: ./gatekey.toml, else the user's]
        #[arg(long, value_name = "FILE", env = "GATEKEY_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Revoke a token, or all of a name; a running gatekey ends what its holder has open within a second
    Revoke {
        /// Its id, or a name
        #[arg(value_name = "NAME|ID")]
        token: String,
        /// Config file that names the file of tokens [default: ./gatekey.toml, else the user's]
        #[arg(long, value_name = "FILE", env = "GATEKEY_CONFIG")]
        config: Option<PathBuf>,
    },
}

/// Look at the upstreams and write a config, a gating map and drafts of skills. No file that is there is written over.
#[derive(Debug, ClapArgs)]
pub(super) struct Init {
    /// Where to write [default: the config's folder, else this one]
    #[arg(long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Show what would be written
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) setup: Setup,
}

/// Look at and try the tools of the upstreams.
#[derive(Debug, ClapArgs)]
pub(super) struct Tools {
    #[command(subcommand)]
    pub(super) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// List every tool: exposed name, effect, upstream, skills that open it
    List {
        #[command(flatten)]
        setup: Setup,
    },
    /// Show one tool's full definition
    Show {
        /// Exposed name
        name: String,
        #[command(flatten)]
        setup: Setup,
    },
    /// Call one tool, loading the skill that opens it first
    Call {
        /// Exposed name
        name: String,
        /// The arguments, as a JSON object
        #[arg(long = "args", value_name = "JSON", default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        setup: Setup,
    },
}

/// Look at the skills.
#[derive(Debug, ClapArgs)]
pub(super) struct Skills {
    #[command(subcommand)]
    pub(super) command: SkillsCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum SkillsCommand {
    /// List every skill, and what was wrong with those that are left out
    List {
        #[command(flatten)]
        setup: Setup,
    },
    /// Tell authors why a skill will be missed: what its name, description and body lack; exit 1 on findings
    Lint {
        /// Folders of skills, or of one skill [default: those of the config]
        #[arg(value_name = "DIR")]
        folders: Vec<PathBuf>,
        /// Config file whose skills are looked at where no folder is named [default: ./gatekey.toml, else the user's]
        #[arg(long, value_name = "FILE", env = "GATEKEY_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Take over skills from a folder, an archive (zip, tar, tar.gz) or a git repository; nobody vouches for them then
    Import(Import),
    /// Approve skills that nobody vouches for, as they are now; a change of any file asks again
    Trust {
        /// Their names
        #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
        names: Vec<String>,
        /// All that are not approved
        #[arg(long)]
        all: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        setup: Setup,
    },
    /// Take back what was approved
    Distrust {
        /// Their names
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        setup: Setup,
    },
    /// Make a pair of keys to sign skills with: FILE and FILE.pub, as minisign's; GATEKEY_KEY_PASSWORD gives a password
    Keygen {
        /// The secret key
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Sign skills: every file of them, in `skill.minisig` of their folders
    Sign {
        /// Folders of skills, or of one skill
        #[arg(value_name = "DIR", required = true)]
        folders: Vec<PathBuf>,
        /// The secret key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Say whose signatures skills have; exit 1 where one is worth nothing
    Verify {
        /// Folders of skills, or of one skill [default: those of the config]
        #[arg(value_name = "DIR")]
        folders: Vec<PathBuf>,
        #[command(flatten)]
        setup: Setup,
    },
    /// Show one skill: playbook, references, and the tools that it opens
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        setup: Setup,
    },
}

/// What was decided and called.
#[derive(Debug, ClapArgs)]
pub(super) struct AuditCommand {
    #[command(subcommand)]
    pub(super) command: AuditAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum AuditAction {
    /// Say whether the audit is as it was written; exit 1 with the place where it is not
    Verify {
        /// Files that are written to; those that were put aside are looked at too [default: the config's]
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// A head that was printed before: the audit must still go through it (repeatable)
        #[arg(long = "head", value_name = "NUMBER:DIGEST", value_parser = super::audit::parse_head)]
        heads: Vec<String>,
        #[command(flatten)]
        setup: Setup,
    },
}

/// Take over skills from elsewhere.
#[derive(Debug, ClapArgs)]
pub(super) struct Import {
    /// A folder, an archive, or the address of a git repository
    #[arg(value_name = "SOURCE")]
    pub(super) source: String,
    /// Skills to take [default: all]
    #[arg(long = "skill", value_name = "NAME")]
    pub(super) skills: Vec<String>,
    /// Branch or tag of the repository
    #[arg(long, value_name = "REVISION")]
    pub(super) revision: Option<String>,
    /// Where they go [default: the config's first untrusted folder]
    #[arg(long, value_name = "DIR")]
    pub(super) into: Option<PathBuf>,
    /// Show what would be taken, and the scan, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) setup: Setup,
}

/// Check config, gating maps, skills and names; exit 1 on findings.
#[derive(Debug, ClapArgs)]
pub(super) struct Check {
    /// Start no upstream: take what is recorded
    #[arg(long)]
    pub(super) offline: bool,
    /// For whom findings are written [default: human]
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(super) format: Option<Format>,
    /// How strict skills are read: `lenient` lets pass what clients let pass, `spec` nothing that differs from the standard
    #[arg(long, value_name = "LEVEL", default_value = "lenient")]
    pub(super) level: Level,
    /// A client whose limits on names and tools hold too
    #[arg(long, value_name = "CLIENT", value_parser = client())]
    pub(super) client: Option<String>,
    /// Tokens that a skill may have in the list with all that is open then, and a fresh client's start
    #[arg(long, value_name = "TOKENS")]
    pub(super) max_tokens: Option<usize>,
    /// A git revision: tell what the gating map opens now that it did not open then
    #[arg(long, value_name = "REVISION")]
    pub(super) against: Option<String>,
    #[command(flatten)]
    pub(super) recorded: Recorded,
    #[command(flatten)]
    pub(super) setup: Setup,
}

/// For whom findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// People.
    Human,
    /// Programs, as `--json`.
    Json,
    /// Code scanning: SARIF 2.1.0.
    Sarif,
    /// GitHub's annotations.
    Github,
    /// JUnit's XML.
    Junit,
}

/// How strict skills are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Level {
    /// As clients do.
    Lenient,
    /// As the standard has it.
    Spec,
}

fn client() -> impl clap::builder::TypedValueParser<Value = String> {
    clap::builder::PossibleValuesParser::new(crate::catalog::CLIENTS.iter().map(|client| client.name))
}

/// Where it is recorded what upstreams and skills are.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct Recorded {
    /// What was recorded [default: gatekey.lock beside the config]
    #[arg(long, value_name = "FILE")]
    pub(super) lock: Option<PathBuf>,
}

/// Record what upstreams and skills are now, for reviews and for `check`.
#[derive(Debug, ClapArgs)]
pub(super) struct Lock {
    /// Record changes too: all, or those of an upstream, `upstream:tool` or `skill:name` (repeatable)
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    pub(super) accept: Option<Vec<String>>,
    #[command(flatten)]
    pub(super) recorded: Recorded,
    #[command(flatten)]
    pub(super) setup: Setup,
}

/// Show what changed since it was recorded.
#[derive(Debug, ClapArgs)]
pub(super) struct Diff {
    /// Compare with this lock file instead of with what upstreams and skills are now
    #[arg(long, value_name = "FILE")]
    pub(super) against: Option<PathBuf>,
    #[command(flatten)]
    pub(super) recorded: Recorded,
    #[command(flatten)]
    pub(super) setup: Setup,
}

/// Say what each set of skills costs in tokens, against listing every tool.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct Budget {
    /// Start no upstream: take what is recorded
    #[arg(long)]
    pub(super) offline: bool,
    /// A further set besides none, each skill and all: skills joined by `+` (repeatable)
    #[arg(long = "set", value_name = "SKILL+SKILL")]
    pub(super) sets: Vec<String>,
    /// Tokens of the model's context window, of which shares are told
    #[arg(long, value_name = "TOKENS", default_value_t = 200_000, value_parser = at_least_one)]
    pub(super) window: usize,
    /// By what tokens are counted
    #[arg(long, value_name = "NAME", default_value = "o200k_base")]
    pub(super) tokenizer: CountedBy,
    /// How it is shown; `--json` is the same as json
    #[arg(long, value_name = "FORM", default_value = "table")]
    pub(super) format: BudgetForm,
    /// Show what changed since this budget, as `--json` printed it: Markdown for a comment on a pull request
    #[arg(long, value_name = "OLD.json")]
    pub(super) compare: Option<PathBuf>,
    /// Write it into this file instead of stdout
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// How many of the heaviest tools and parameters are shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) top: usize,
    /// Calls of tools in the task that is estimated
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = task_size)]
    pub(super) steps: usize,
    /// Skills that it loads before, each as heavy as all are on average; a named set loads its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = task_size)]
    pub(super) loads: usize,
    /// Tokens of one of its results
    #[arg(long, value_name = "TOKENS", default_value_t = 600)]
    pub(super) result: usize,
    /// Tokens by which the model writes one of its calls
    #[arg(long, value_name = "TOKENS", default_value_t = 60)]
    pub(super) call: usize,
    /// What a token from the prompt cache costs, as a share of a new one: 0 to 1
    #[arg(long = "cache-read", value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    pub(super) cache_read: f64,
    /// Show beside it what running proxies of these servers really sent
    #[arg(long)]
    pub(super) measured: bool,
    #[command(flatten)]
    pub(super) recorded: Recorded,
    #[command(flatten)]
    pub(super) setup: Setup,
}

/// By what tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CountedBy {
    /// Of GPT-4o and later.
    #[value(name = "o200k_base")]
    O200kBase,
    /// Of GPT-4.
    #[value(name = "cl100k_base")]
    Cl100kBase,
    /// A quarter of the bytes: an estimate.
    #[value(name = "bytes")]
    Bytes,
}

/// How a budget is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BudgetForm {
    /// For a terminal.
    Table,
    /// For a pull request or a wiki.
    Markdown,
    /// The sets, one a line.
    Csv,
    /// Everything, as one object.
    Json,
    /// One page with a chart that needs nothing else.
    Html,
}

fn at_least_one(given: &str) -> Result<usize, String> {
    given.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be a number above 0".to_owned())
}

fn task_size(given: &str) -> Result<usize, String> {
    let most = BUDGET_CALLS_MOST;
    given.parse().ok().filter(|number| *number <= most).ok_or_else(|| format!("must be 0 to {most}"))
}

fn share(given: &str) -> Result<f64, String> {
    given.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "must be 0 to 1".to_owned())
}

/// Write the list of skills into a file that clients load, such as SKILLS-INDEX.md, and keep it fresh.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct Index {
    /// A folder of skills instead of the config's; without --config no config is looked for (repeatable)
    #[arg(long = "skills", value_name = "DIR")]
    pub(super) skills: Vec<PathBuf>,
    /// Where it stands; in a file that has other text between `<!-- gatekey:index start -->` and
    /// `<!-- gatekey:index end -->`, each on a line of its own [default: the config's, else SKILLS-INDEX.md]
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// How long it may be, estimated [default: the config's, else 1000]
    #[arg(long, value_name = "TOKENS", value_parser = budget)]
    pub(super) budget: Option<usize>,
    /// Stay, and write it again whenever it is another one
    #[arg(long)]
    pub(super) watch: bool,
    /// Print it instead
    #[arg(long, conflicts_with_all = ["output", "watch"])]
    pub(super) stdout: bool,
    #[command(flatten)]
    pub(super) setup: Setup,
}

fn budget(given: &str) -> Result<usize, String> {
    let is_within = |tokens: &usize| (INDEX_TOKENS_LEAST..=INDEX_TOKENS_MOST).contains(tokens);
    let wrong = || format!("must be {INDEX_TOKENS_LEAST} to {INDEX_TOKENS_MOST}");
    given.parse().ok().filter(is_within).ok_or_else(wrong)
}

/// Measure how well search finds the right skills, on a labelled set.
#[derive(Debug, ClapArgs)]
pub(super) struct Eval {
    /// One JSON object a line: {"query": …, "gold": [names of right skills, none where there is none], "lang"?: …, "gold_tools"?: […]}
    #[arg(value_name = "SET.jsonl")]
    pub(super) set: PathBuf,
    /// A folder of skills instead of the config's (repeatable)
    #[arg(long = "skills", value_name = "DIR")]
    pub(super) skills: Vec<PathBuf>,
    /// Servers as skills instead: one {"name": …, "description": …} a line
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "skills")]
    pub(super) servers: Option<PathBuf>,
    /// The servers' tools: one {"server": …, "name": …, "description": …} a line
    #[arg(long, value_name = "FILE.jsonl", requires = "servers")]
    pub(super) tools: Option<PathBuf>,
    /// By words only, without the encoder
    #[arg(long)]
    pub(super) lexical: bool,
    /// Compare with what another config finds, or `lexical`: the same by words only
    #[arg(long, value_name = "CONFIG|lexical")]
    pub(super) against: Option<PathBuf>,
    #[command(flatten)]
    pub(super) setup: Setup,
}

/// Files that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// gatekey.toml
    Config,
    /// A gating map
    Map,
}
