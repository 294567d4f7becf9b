package forge

import (
	"context"
	"slices"
	"strings"
	"time"
)

// State is a pull request's.
type State string

// States.
const (
	Open   State = "open"
	Closed State = "closed"
	Merged State = "merged"
)

// PullRequest is a pull request, on GitLab a merge request, as its forge reports it. It may be old
// by the time it is read: the commits decide.
type PullRequest struct {
	Number                int64
	Title, Author, WebURL string
	Draft                 bool
	// Fork says that the head may come from a user without permission to push to the repository: it
	// is in another repository, or in a repository that is gone.
	Fork  bool
	State State
	// HeadSHA is the commit that is proposed, HeadRef the branch it is on, in the
	// repository that it comes from. Fetch it by Profile.HeadRef.
	HeadSHA, HeadRef string
	// BaseRef is the branch that it will be merged into. BaseSHA is that branch's commit as the
	// forge recorded it, and "" if the forge does not say; it may be older than the branch.
	BaseRef, BaseSHA string
	// MergeRef is the ref to fetch with the forge's own result of merging, "" if the forge makes no
	// such ref. During conflicts the ref is missing, or belongs to older commits: its parents show
	// that.
	MergeRef string
	// MergeSHA is the commit that the merge made on the base branch, however it was
	// merged: by a merge commit, squashed, rebased or fast-forward. "" until then.
	MergeSHA  string
	Labels    []string
	UpdatedAt time.Time
}

const (
	// maxTitle bounds a title, in bytes; the forges allow some 255 characters.
	maxTitle = 1 << 10
	// maxLabels bounds the labels of a pull request.
	maxLabels = 100
)

// bounded is p with texts that a thousand of them can be kept of. Names are not cut, as
// they would name something else.
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

// word is s, or "" if s is too long for a name.
func word(s string) string {
	if len(s) > maxWord {
		return ""
	}
	return s
}

// Proposal is a pull request to be opened, of the branch Head into Base.
type Proposal struct{ Title, Body, Head, Base string }

// Comment is a comment on a pull request's conversation.
type Comment struct {
	ID int64
	// Number is the pull request's.
	Number               int64
	Author, Body, WebURL string
	// UpdatedAt changes when the text is edited, and on some forges when something else happens to
	// the comment. Client.Edits tells the two apart.
	CreatedAt, UpdatedAt time.Time
	// Node is GitHub's global id of the comment, "" elsewhere.
	Node string
}

// Level is a user's permission in a repository.
type Level int

// Levels, each with all that the ones before it may do. Not every forge has all.
const (
	None Level = iota
	Read
	Triage // labels and closes, pushes nothing
	Write
	Maintain
	Admin
)

// String is the level's name.
func (l Level) String() string {
	if l < None || l > Admin {
		return "none"
	}
	return [...]string{"none", "read", "triage", "write", "maintain", "admin"}[l]
}

// Reaction is a mark on a comment.
type Reaction string

// Reactions.
const (
	Eyes    Reaction = "eyes" // it was read
	Done    Reaction = "+1"
	Refused Reaction = "-1"
)

// Cursor identifies the last read. It is opaque, is only valid for the client's repository, and may
// be kept.
type Cursor string

// Client reads and writes the data of one repository on its forge. Its errors are *forgehttp.Error,
// and none of them shows a token. It may be used by several goroutines. A context without deadline
// gets one.
type Client interface {
	// Profile returns the properties of every forge of its kind.
	Profile() Profile
	// Pulls lists the open pull requests, the ones that changed last first, and at most 1,000 of
	// them. An empty cursor requests all. With the cursor of the call before, an unchanged list
	// costs the fewest requests that the forge can answer it with: unchanged is true then and the
	// list nil. If a pull request is no longer listed, it may have moved between two pages: call
	// Pull to find out.
	Pulls(ctx context.Context, after Cursor) (list []PullRequest, next Cursor, unchanged bool, err error)
	// Pull reads one pull request, open or not.
	Pull(ctx context.Context, number int64) (PullRequest, error)
	// MergedSince lists the pull requests that were merged and changed at or after a time. whole
	// says that the list is complete: a list with more than 1,000 closed ones is cut off.
	MergedSince(ctx context.Context, since time.Time) (list []PullRequest, whole bool, err error)
	// Comments lists the comments of a pull request that were made or edited at or after a time,
	// the oldest first. The zero time requests all of them. It returns at most 1,000.
	Comments(ctx context.Context, number int64, since time.Time) ([]Comment, error)
	// CommentsSince is Comments for all pull requests at once. Asked again for the
	// same time, it costs one request where nothing was said.
	CommentsSince(ctx context.Context, since time.Time) ([]Comment, error)
	// Permission returns a user's current permission, None for an unknown user.
	Permission(ctx context.Context, user string) (Level, error)
	// React marks a comment. If the forge does not have the mark, nothing happens.
	React(ctx context.Context, number, comment int64, r Reaction) error
	// Edits reads what the forge records about edits of a comment's text. The text is
	// that of c, which may be only the part that CommentsSince keeps.
	Edits(ctx context.Context, c Comment) (Edits, error)
	// CreateComment writes a comment, and returns it as the forge stored it.
	CreateComment(ctx context.Context, number int64, body string) (Comment, error)
	// EditComment replaces a comment's text, and returns it as the forge stored it.
	EditComment(ctx context.Context, number, id int64, body string) (Comment, error)
	DeleteComment(ctx context.Context, number, id int64) error
	// PullOf finds the pull request of a branch of the repository itself into another one, the
	// newest of several, in any state.
	PullOf(ctx context.Context, base, head string) (p PullRequest, found bool, err error)
	// OpenPull opens a pull request of a branch of the repository itself.
	OpenPull(ctx context.Context, p Proposal) (PullRequest, error)
	// EditPull gives one another text and, unless it is empty, another title.
	EditPull(ctx context.Context, number int64, title, body string) error
	// ClosePull closes a pull request that is not merged.
	ClosePull(ctx context.Context, number int64) error
	// Self is the login that the token is of. It is read once.
	Self(ctx context.Context) (string, error)

	// SetStatus adds a status to a commit.
	SetStatus(ctx context.Context, sha string, s CommitStatus) error
	// Statuses returns the newest status of each context of a commit.
	Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error)
}
