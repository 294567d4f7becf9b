package forge

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// Kind is a kind of forge, by the name that weir's configuration gives it.
type Kind string

// Profile holds everything that weir knows about a kind of forge without asking a server. Code
// outside this package reads a Profile instead of comparing kinds.
type Profile struct {
	Kind Kind
	// Label names the forge in metrics, logs and errors. Forgejo has Gitea's label,
	// because both are one API to weir.
	Label string
	// PullRequest and Repository are the forge's own words for these two things.
	PullRequest, Repository string
	// WebhooksOnly means that New makes no client for this kind.
	WebhooksOnly bool
	// Apps means that an App that is installed on a repository can issue the token.
	Apps bool
	// GitUser is the user name that Git sends together with a token that may push, ""
	// for the usual one.
	GitUser string
	Limits  Limits

	// groups means that a repository may be in nested groups. Else it is owner/name.
	groups bool
	// address is the address of the forge for options without one, "" if it is required.
	address string
	// hosts are beginnings of host names that belong to forges of this kind.
	hosts []string
	paths paths
	// head and merge are the refs of a pull request, with %d for its number. merge is ""
	// where the forge makes no such ref.
	head, merge string
	webhook     webhook
	open        func(p Profile, base *url.URL, o ClientOptions) (Client, error)
}

// Limits holds the limits of a forge.
type Limits struct {
	// Context and Description are the lengths of texts of a commit status, in UTF-16
	// units, which is what a forge can at most count for a character.
	Context, Description int
	// PerMinute bounds the writes of statuses, 0 for no bound.
	PerMinute int
	// Comment is the length of a comment in bytes. No forge measures a text as longer
	// than its bytes.
	Comment int
}

// webhook describes how a forge sends deliveries.
type webhook struct {
	// event, delivery and signature are names of headers. The first header that is present is used.
	event, delivery, signature []string
	// token is the header with the secret itself, "" for a forge that signs.
	token string
	// withoutEvent means that a delivery may have no event.
	withoutEvent bool
	// senderIsAuthor means that a delivery about an edited comment names the author of the comment
	// as its sender, even if another user edited it.
	senderIsAuthor bool
	decode         func(*Hint, []byte) error
}

// ProfileOf returns the profile of a kind. The profile of an unknown kind has the kind
// only: it makes no links, refs or clients.
func ProfileOf(kind Kind) Profile {
	for _, p := range profiles() {
		if p.Kind == kind {
			return p
		}
	}
	return Profile{Kind: kind, Label: string(kind)}
}

// Kinds are the names of all kinds, in the order in which documents list them.
func Kinds() []string {
	var out []string
	for _, p := range profiles() {
		out = append(out, string(p.Kind))
	}
	return out
}

// RepositoryOf returns the name of the repository at an address of Git or of the web:
// owner/name, or the whole path with all groups.
func (p Profile) RepositoryOf(address string) (string, error) {
	if p.groups {
		return ProjectOf(address)
	}
	return RepositoryOf(address)
}

// HeadRef is the ref to fetch that holds a pull request's head, forks included.
func (p Profile) HeadRef(number int64) string { return numbered(p.head, number) }

// MergeRef is the ref to fetch that holds the forge's own result of merging a pull request,
// "" where the forge makes no such ref.
func (p Profile) MergeRef(number int64) string { return numbered(p.merge, number) }

func numbered(form string, number int64) string {
	if form == "" {
		return ""
	}
	return fmt.Sprintf(form, number)
}

// PullRefs are the refs of a pull request on one or several kinds of forges.
type PullRefs struct{ Head, Merge string }

// AllPullRefs lists where a repository may keep a pull request, for a caller that does not
// know the kind of its forge. It leaves out a merge ref that not all forges with that head
// ref make.
func AllPullRefs(number int64) []PullRefs {
	var out []PullRefs
	for _, p := range profiles() {
		one := PullRefs{p.HeadRef(number), p.MergeRef(number)}
		i := slices.IndexFunc(out, func(r PullRefs) bool { return r.Head == one.Head })
		switch {
		case one.Head == "":
		case i < 0:
			out = append(out, one)
		case out[i].Merge != one.Merge:
			out[i].Merge = ""
		}
	}
	return out
}

// first returns the first header that is present.
func first(h http.Header, names []string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}
