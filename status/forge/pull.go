package forge

import (
	"context"
	"slices"
	"strings"
	"time"
)

// State is the state of a pull request.
type State string

// The states of a pull request.
const (
	Open   State = "open"
	Closed State = "closed"
	Merged State = "merged"
)

// PullRequest is a pull request (on GitLab, a merge request) as reported by its forge. The data may be
// outdated when it is read; only the commits are reliable.
type PullRequest struct {
	Number                int64
	Title, Author, WebURL string
	Draft                 bool
	// Fork says that the head may come from a user without push permission to the repository: it is in
	// another repository, or in a deleted one.
	Fork  bool
	State State
	// HeadSHA is the proposed commit. HeadRef is its branch, in the repository that it comes from. Use
	// Profile.HeadRef to fetch it.
	HeadSHA, HeadRef string
	// BaseRef is the branch to merge into. BaseSHA is that branch's commit as recorded by the forge, which
	// may be older than the branch. It is "" if the forge does not report it.
	BaseRef, BaseSHA string
	// MergeRef is the ref with the forge's own merge, "" if the forge creates no such ref. During conflicts
	// the ref is missing, or belongs to older commits, as its parents show.
	MergeRef string
	// MergeSHA is the commit that the merge created on the base branch, by any method: merge commit,
	// squash, rebase or fast-forward. It is "" before the merge.
	MergeSHA  string
	Labels    []string
	UpdatedAt time.Time
}

const (
	// maxTitle is the maximum size of a title in bytes. The forges allow about 255 characters.
	maxTitle = 1 << 10
	// maxLabels is the maximum number of labels of a pull request.
	maxLabels = 100
)

// bounded returns p with limited texts, so that a thousand of them fit into memory. Names are not
// truncated, because a truncated name would name something else.
func (p PullRequest) bounded() PullRequest {
	if len(p.Title) > maxTitle {
		p.Title = strings.ToValidUTF8(p.Title[:maxTitle], "") + "…"
	}
	for _, name := range []*string{&p.Author, &p.WebURL, &p.HeadSHA, &p.HeadRef, &p.BaseRef, &p.BaseSHA, &p.MergeSHA} {
		*name = word(*name)
	}
	p.Labels = slices.DeleteFunc(p.Labels, func(l string) bool { return len(l) > maxWord })
	p.Labels = p.Labels[:min(len(p.Labels), maxLabels)]
	return p
}

// word returns s, or "" if s is too long for a name.
func word(s string) string {
	if len(s) > maxWord {
		return ""
	}
	return s
}

// Proposal is a pull request to open, from the branch Head into Base.
type Proposal struct{ Title, Body, Head, Base string }

// Comment is a comment in a pull request's conversation.
type Comment struct {
	ID int64
	// Number is the number of the pull request.
	Number               int64
	Author, Body, WebURL string
	// UpdatedAt changes when the text is edited, and on some forges when something else happens to the
	// comment. Client.Edits distinguishes these cases.
	CreatedAt, UpdatedAt time.Time
	// Node is GitHub's global ID of the comment, "" on other forges.
	Node string
}

// Level is a user's permission in a repository.
type Level int

// The levels. Each includes the permissions of the previous ones. Not every forge has all levels.
const (
	None Level = iota
	Read
	Triage // can set labels and close, but not push
	Write
	Maintain
	Admin
)

// String returns the name of the level.
func (l Level) String() string {
	if l < None || l > Admin {
		return "none"
	}
	return [...]string{"none", "read", "triage", "write", "maintain", "admin"}[l]
}

// Reaction is a mark on a comment.
type Reaction string

// The reactions.
const (
	Eyes    Reaction = "eyes" // the comment was read
	Done    Reaction = "+1"
	Refused Reaction = "-1"
)

// Cursor identifies the last read of a list. It is opaque, valid only for the client's repository, and may
// be stored.
type Cursor string

// Client reads and writes the data of one repository on its forge. All its errors are *forgehttp.Error, and
// none contains a token. It is safe for concurrent use. If a context has no deadline, the client sets one.
type Client interface {
	// Profile returns the properties of the client's kind of forge.
	Profile() Profile
	// Pulls lists the open pull requests, the ones that changed last first, at most 1,000. An empty cursor
	// requests all of them. With the cursor of the previous call, checking an unchanged list uses the
	// minimum number of requests that the forge supports: unchanged is then true and list is nil. A pull
	// request that is no longer listed may have moved between two pages during the read; call Pull to check
	// it.
	Pulls(ctx context.Context, after Cursor) (list []PullRequest, next Cursor, unchanged bool, err error)
	// Pull reads one pull request, open or not.
	Pull(ctx context.Context, number int64) (PullRequest, error)
	// MergedSince lists the merged pull requests that changed at or after a time. whole says that the list
	// is complete. At most 1,000 closed pull requests are read.
	MergedSince(ctx context.Context, since time.Time) (list []PullRequest, whole bool, err error)
	// Comments lists the comments of a pull request that were created or edited at or after a time, the
	// oldest first. The zero time requests all of them. It returns at most 1,000.
	Comments(ctx context.Context, number int64, since time.Time) ([]Comment, error)
	// CommentsSince is Comments for all pull requests at once. If it is called again for the same time, and
	// nothing changed, it uses one request.
	CommentsSince(ctx context.Context, since time.Time) ([]Comment, error)
	// Permission returns a user's current permission, None for an unknown user.
	Permission(ctx context.Context, user string) (Level, error)
	// React adds a reaction to a comment. If the forge does not support the reaction, nothing happens.
	React(ctx context.Context, number, comment int64, r Reaction) error
	// Edits returns the forge's record of edits of a comment's text. The text is the one in c, possibly
	// only the part that CommentsSince keeps.
	Edits(ctx context.Context, c Comment) (Edits, error)
	// CreateComment writes a comment, and returns it as the forge stored it.
	CreateComment(ctx context.Context, number int64, body string) (Comment, error)
	// EditComment replaces a comment's text, and returns it as the forge stored it.
	EditComment(ctx context.Context, number, id int64, body string) (Comment, error)
	DeleteComment(ctx context.Context, number, id int64) error
	// PullOf finds the pull request from a branch of the repository itself into another one, in any state.
	// If there are several, it returns the newest.
	PullOf(ctx context.Context, base, head string) (p PullRequest, found bool, err error)
	// OpenPull opens a pull request from a branch of the repository itself.
	OpenPull(ctx context.Context, p Proposal) (PullRequest, error)
	// EditPull sets the text of a pull request and, unless it is empty, its title.
	EditPull(ctx context.Context, number int64, title, body string) error
	// ClosePull closes a pull request that is not merged.
	ClosePull(ctx context.Context, number int64) error
	// Self returns the login of the token's user. It is read once.
	Self(ctx context.Context) (string, error)

	// SetStatus adds a status to a commit.
	SetStatus(ctx context.Context, sha string, s CommitStatus) error
	// Statuses returns the newest status of each context of a commit.
	Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error)
}
