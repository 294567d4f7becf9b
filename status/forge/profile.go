package forge

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// Kind is a kind of forge, as named in weir's configuration.
type Kind string

// Profile contains all properties of a kind of forge that do not depend on a server. Code outside this
// package uses a Profile instead of comparing kinds.
type Profile struct {
	Kind Kind
	// Label names the forge in metrics, logs and errors. Forgejo has the label of Gitea, because weir uses
	// the same API for both.
	Label string
	// PullRequest and Repository are the forge's own terms.
	PullRequest, Repository string
	// WebhooksOnly says that New supports no client for this kind.
	WebhooksOnly bool
	// Apps says that an App that is installed on a repository can issue the token.
	Apps bool
	// GitUser is the user name for Git together with a token that may push, "" for the default.
	GitUser string
	Limits  Limits

	// groups says that repositories may be in nested groups. Otherwise, their names are owner/name.
	groups bool
	// address is the default address of the forge, "" if the address is required.
	address string
	// hosts lists prefixes of host names of forges of this kind.
	hosts []string
	paths paths
	// head and merge are the refs of a pull request, with %d for its number. merge is "" if the forge
	// creates no such ref.
	head, merge string
	webhook     webhook
	open        func(p Profile, base *url.URL, o ClientOptions) (Client, error)
}

// Limits contains the limits of a forge.
type Limits struct {
	// Context and Description are the maximum lengths of texts in a commit status, in UTF-16 units, which
	// is the strictest way in which forges count characters.
	Context, Description int
	// PerMinute is the rate limit for writes of statuses, 0 for no limit.
	PerMinute int
	// Comment is the maximum length of a comment in bytes. No forge counts more than one unit per byte.
	Comment int
}

// webhook describes the format of a forge's deliveries.
type webhook struct {
	// event, delivery and signature are names of headers. The first header that is present is used.
	event, delivery, signature []string
	// token is the header that contains the secret itself, "" for a forge that signs.
	token string
	// withoutEvent says that deliveries may have no event.
	withoutEvent bool
	// senderIsAuthor says that a delivery about an edited comment names the author of the comment as its
	// sender, even if another user edited it.
	senderIsAuthor bool
	decode         func(*Hint, []byte) error
}

// ProfileOf returns the profile of a kind. For an unknown kind, it contains only the kind, and supports no
// links, refs or clients.
func ProfileOf(kind Kind) Profile {
	for _, p := range profiles() {
		if p.Kind == kind {
			return p
		}
	}
	return Profile{Kind: kind, Label: string(kind)}
}

// Kinds returns the names of all kinds, in the order of the documentation.
func Kinds() []string {
	var out []string
	for _, p := range profiles() {
		out = append(out, string(p.Kind))
	}
	return out
}

// RepositoryOf returns the name of the repository at a Git or web address: owner/name, or the whole path
// with all groups.
func (p Profile) RepositoryOf(address string) (string, error) {
	if p.groups {
		return ProjectOf(address)
	}
	return RepositoryOf(address)
}

// HeadRef returns the ref of a pull request's head, also for forks.
func (p Profile) HeadRef(number int64) string { return numbered(p.head, number) }

// MergeRef returns the ref of the forge's own merge of a pull request, "" if the forge creates no such ref.
func (p Profile) MergeRef(number int64) string { return numbered(p.merge, number) }

func numbered(form string, number int64) string {
	if form == "" {
		return ""
	}
	return fmt.Sprintf(form, number)
}

// PullRefs are the refs of a pull request on one or several kinds of forges.
type PullRefs struct{ Head, Merge string }

// AllPullRefs lists the possible refs of a pull request, for a caller that does not know the kind of forge.
// It omits a merge ref if not all forges with that head ref create it.
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
