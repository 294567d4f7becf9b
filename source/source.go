// Package source turns a Git repository and a ref into snapshots: a commit with its tree. It also merges pull
// requests, and returns how commits are related. It checks nothing out. It pushes only branches of weir
// itself, as new branches or with further commits (revert.go creates the commits in memory, transport.Pusher
// sends them).
//
//	server ──transport──▶ mirror ─┐
//	                              ├─git──▶ verified tree ─▶ signature ─▶ Snapshot
//	repository on this machine ───┘                     └─▶ merge by path ─▶ Merge
//
// # Terms
//
//   - A source is a repository and the Ref that weir follows there.
//   - The mirror is a bare directory with the history of that ref. It is a cache, which is recreated if it is
//     damaged or too large.
//   - A backend is a mirror with its server, or a local repository, which is read in place and never written.
//   - A selection (select.go) is the object that the ref currently names on the server.
//   - A Merge is a pull request's head merged with a followed commit.
//
// # Rules
//
//   - A snapshot is returned only after its complete tree was verified. If a missing object counted as a
//     missing file, weir would delete machines.
//   - Everything that prevents a snapshot is a fault.UnavailableError with a Reason. Last still returns the
//     last good snapshot, even after a restart, so that a broken source is never treated as an empty one.
//   - All received data is bounded: refs, packs, objects, deltas, entries, depth and time. Anyone may open a
//     pull request, so pull requests have lower bounds, and their objects are dropped when the mirror is
//     recreated (git.ErrReplaced).
//   - Only commits that weir applies must be signed: the followed commit, or the tag that led to it. A pull
//     request is only planned.
//   - Operations on a repository run one at a time. Reading objects does not wait for them.
//
// # Packages
//
// git reads objects, transport connects to servers, signature checks signatures, snapshot defines the value,
// fault the errors. worktree reads uncommitted files, upload sends them to a daemon, and githubapp creates
// tokens. Only these packages import go-git.
package source

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/transport"
)

const (
	defaultInterval = 30 * time.Second
	defaultTimeout  = 2 * time.Minute
)

// Ref defines what weir follows. Set at most one field. Without one, weir follows the default
// branch, whatever a local work tree has checked out.
type Ref struct {
	// Branch is the name of a branch.
	Branch string `yaml:"branch"`
	// Tag is the name of a tag.
	Tag string `yaml:"tag"`
	// SemVer is a range of versions, such as ">=1.2.0 <2.0.0". weir follows the highest version in
	// the range among the tags that are versions, with or without a leading v. A pre-release counts
	// only if the range names one. If versions differ only in build metadata, the youngest commit
	// counts.
	SemVer string `yaml:"semver"`
	// Commit is a full commit hash of 40 hex digits.
	Commit string `yaml:"commit"`
	// Name is a full ref, such as refs/merge-requests/1/head.
	Name string `yaml:"name"`
}

// Config is the configuration of a source.
type Config struct {
	// Name identifies the source in errors, logs and file names.
	Name string
	// URL is http(s)://…, ssh://…, user@host:path, file://… or a local path.
	URL string
	Ref Ref
	// Interval is the time between polls. Default: 30 s.
	Interval time.Duration
	// Dir is the directory for mirrors. Each source has a directory below it. It is not used for a local
	// repository.
	Dir string
	transport.Settings
	// Verify defines the signatures that a revision needs. Default: none.
	Verify signature.Policy
}

// Options are the dependencies of a Git. The zero value is usable.
type Options struct {
	// Logger is the log. Default: nothing is logged.
	Logger *slog.Logger
	// Now returns the time. Default: time.Now.
	Now func() time.Time
	// Rand returns numbers in [0,1) for the jitter of polls.
	Rand func() float64
	// Timeout bounds the time that an operation waits for a silent remote. A remote that sends data gets
	// more time (transport.Deadline). Default: 2 min.
	Timeout time.Duration
	// Fetched is called after each fetch, with its duration and error. It may be nil.
	Fetched func(took time.Duration, err error)
	// Found is called after each successful fetch, after Last returns the result, with the start time and the
	// revision. It may be nil.
	Found func(began time.Time, revision string)
}

var validName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// New returns a source. It does no input or output except for reading CAFile. For a URL that can never work
// it returns an *UnavailableError.
func New(cfg Config, opts Options) (*Git, error) {
	if !validName.MatchString(cfg.Name) {
		return nil, fmt.Errorf("configure source %q: name must match %s", cfg.Name, validName)
	}
	if cfg.Interval < 0 {
		return nil, fmt.Errorf("configure source %s: interval %s is negative", cfg.Name, cfg.Interval)
	}
	if cfg.Interval == 0 {
		cfg.Interval = defaultInterval
	}
	if err := cfg.Ref.Validate(); err != nil {
		return nil, fmt.Errorf("configure source %s: %w", cfg.Name, err)
	}
	if err := checkVerify(cfg); err != nil {
		return nil, fmt.Errorf("configure source %s: %w", cfg.Name, err)
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Rand == nil {
		opts.Rand = rand.Float64
	}
	if opts.Timeout <= 0 {
		opts.Timeout = defaultTimeout
	}
	loc, err := transport.Parse(cfg.URL)
	if err != nil {
		return nil, fault.Unavailable(cfg.Name, err)
	}
	g := &Git{
		cfg: cfg, opts: opts, id: transport.ID(cfg.URL),
		log:    opts.Logger.With(slog.String("source", cfg.Name)),
		nudges: make(chan struct{}, 1),
	}
	if loc.Local != "" {
		if cfg.Settings != (transport.Settings{}) {
			return nil, fmt.Errorf("configure source %s: auth, caFile, clientCert and proxy are for http(s) and ssh, not for a repository on this machine", cfg.Name)
		}
		g.backend = newLocalBackend(loc.Local, cfg.Ref, cfg.Verify)
		return g, nil
	}
	if cfg.Dir == "" {
		return nil, fmt.Errorf("configure source %s: a mirror directory is required for a remote repository", cfg.Name)
	}
	r, err := transport.New(loc, cfg.Settings)
	if err != nil {
		return nil, fmt.Errorf("configure source %s: %w", cfg.Name, err)
	}
	dir := filepath.Join(cfg.Dir, g.id+"-"+cfg.Name+".git")
	g.backend = &mirrorBackend{
		remote: r, mirror: newMirror(dir, okName(cfg.Name, cfg.Ref)), ref: cfg.Ref, policy: cfg.Verify, log: g.log,
		sweepAge: 2 * opts.Timeout, now: opts.Now,
	}
	return g, nil
}

// Validate returns an error if the ref is invalid.
func (r Ref) Validate() error {
	set := 0
	for _, s := range []string{r.Branch, r.Tag, r.SemVer, r.Commit, r.Name} {
		if s != "" {
			set++
		}
	}
	switch {
	case set > 1:
		return fmt.Errorf("ref: give one of branch, tag, semver, commit and name, not several")
	case r.SemVer != "":
		if _, err := semver.NewConstraint(r.SemVer); err != nil {
			return fmt.Errorf("ref.semver %q is not a range of versions; write it like >=1.2.0 <2.0.0, 1.x or ~1.4", r.SemVer)
		}
	case r.Name != "" && (!strings.HasPrefix(r.Name, "refs/") || plumbing.ReferenceName(r.Name).Validate() != nil):
		return fmt.Errorf("ref.name %q: give the name of a ref in full, such as refs/heads/main or refs/merge-requests/1/head", r.Name)
	case r.Commit != "" && !git.IsHash(r.Commit):
		return fmt.Errorf("ref.commit %q: give the full object name, 40 lower-case hex digits", r.Commit)
	case r.Branch != "" || r.Tag != "":
		if err := plumbing.ReferenceName(r.fullName()).Validate(); err != nil {
			return fmt.Errorf("ref: %q is not a valid name for a branch or tag", r.Branch+r.Tag)
		}
	}
	return nil
}

// fullName returns the full name of the ref in Git. It is empty for a commit, a range of versions or HEAD.
func (r Ref) fullName() string {
	switch {
	case r.Branch != "":
		return plumbing.NewBranchReferenceName(r.Branch).String()
	case r.Tag != "":
		return plumbing.NewTagReferenceName(r.Tag).String()
	default:
		return r.Name
	}
}
