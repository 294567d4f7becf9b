package images

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/reconciler/newer"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
)

// Forge is where pull requests are, with the token that may push.
type Forge interface {
	Pulls(ctx context.Context, after forge.Cursor) (list []forge.PullRequest, next forge.Cursor, unchanged bool, err error)
	Pull(ctx context.Context, number int64) (forge.PullRequest, error)
	PullOf(ctx context.Context, base, head string) (p forge.PullRequest, found bool, err error)
	OpenPull(ctx context.Context, p forge.Proposal) (forge.PullRequest, error)
	EditPull(ctx context.Context, number int64, title, body string) error
	ClosePull(ctx context.Context, number int64) error
	CreateComment(ctx context.Context, number int64, body string) (forge.Comment, error)
}

// Git is the source's mirror.
type Git interface {
	At(ctx context.Context, revision string) (snapshot.Snapshot, error)
	By(ctx context.Context, revision string) (author, committer string, err error)
	Descends(ctx context.Context, revision, from string) (bool, error)
	Changed(ctx context.Context, from, to string) ([]string, error)
	Pull(ctx context.Context, p source.PullRef) (source.Merge, error)
	Forget(head string) error
	Branch(ctx context.Context, name string, c source.Commit) (transport.Branch, error)
}

// Pusher makes branches, and moves them on.
type Pusher interface {
	At(ctx context.Context, branch string) (string, error)
	Make(ctx context.Context, b transport.Branch) error
}

// Fleet knows which images pools have and could have, and writes pins into files.
type Fleet interface {
	// Survey asks AWS about all pools of the source, as they are at the followed commit.
	Survey(ctx context.Context) (Survey, error)
	// Pin writes pins into the files of a commit, and plans the result.
	Pin(ctx context.Context, on string, pins []newer.Pin) (Pinned, error)
}

// Survey is which pools could have newer images.
type Survey struct {
	// Head is the commit at which the pools were planned.
	Head     string
	Families []newer.Family
	// Gaps are pools, and Unread targets with why, of which that is not known.
	Gaps   []newer.Gap
	Unread map[string]string
}

// Pinned is a change of files that pins images.
type Pinned struct {
	Files map[string][]byte
	// Pins are those that the files write, Refused the others.
	Pins    []newer.Pin
	Refused []Refusal
	Plans   []Planned
}

// Refusal is a pin that somebody has to write by hand.
type Refusal struct {
	newer.Pin
	Text string
}

// Planned is what the change does to a target.
type Planned struct {
	Target string
	// Pools roll, with Machines.
	Pools, Machines int
	// Fault says why there is no plan.
	Fault string
	// Schedule says when the target rolls: its windows, and what it comes after.
	Schedule string
}

// Options are what the surroundings give.
type Options struct {
	Source          string
	PageURL         string
	Author, Address string
	// Every is how often it is asked for newer images, and a pull request opened or changed
	// at most.
	Every time.Duration
	// Settle is how long the followed branch may go on before it is looked at again whether
	// open pull requests are needed still.
	Settle time.Duration
	Forge  Forge
	Git    Git
	Pusher Pusher
	Fleet  Fleet
	Redact func(string) string
	Event  func(events.Event)
	// Counted is told how many pools could have a newer image, and how many pull requests
	// are open.
	Counted func(pools, open int)
	Logger  *slog.Logger
}
