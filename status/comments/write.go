package comments

import (
	"context"
	"strings"

	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// standing is the state of the comment of a pull request, compared with the text that it must have.
type standing string

const (
	upToDate  standing = "the comment has the text"
	keepsPlan standing = "the comment has the outcome, and the plan, which weir no longer has"
	outdated  standing = "the comment has another text"
	edited    standing = "somebody else edited the comment"
	due       standing = "there is no comment, and the pull request needs one"
	deleted   standing = "somebody deleted the comment, and readers look for the outcome there"
	notDue    standing = "there is no comment, and the pull request needs none"
)

// standingFacts contains the facts that decide about a write of a comment.
type standingFacts struct {
	// exists says that there is a comment. foreign says that another user edited it.
	exists, foreign bool
	// same says that the comment has the wanted text. opens says that it starts with the final state of an
	// ended pull request, and that the plan below that is no longer in memory.
	same, opens bool
	// gone says that the comment was deleted. merged and needed describe the pull request.
	gone, merged, needed bool
}

// standing classifies the facts. The first matching case wins.
func (f standingFacts) standing() standing {
	switch {
	case f.exists && f.foreign:
		return edited
	case f.exists && f.same:
		return upToDate
	case f.exists && f.opens:
		return keepsPlan
	case f.exists:
		return outdated
	case f.merged && f.gone:
		return deleted
	case f.needed:
		return due
	}
	return notDue
}

// standing compares a comment with the text that it must have.
func (t *pullComment) standing(p report.Pull, o TextOptions, text string) standing {
	return standingFacts{
		exists: t.id != 0, foreign: t.foreign,
		same: same(t.text, text), opens: p.Unkept && p.Ended() && strings.HasPrefix(plain(t.text), plain(opening(p, o))),
		gone: t.gone, merged: p.State == report.PullMerged, needed: getsComment(p),
	}.standing()
}

// same reports whether two texts are equal. Forges may store line ends and the end of a text differently.
func same(a, b string) bool {
	return plain(a) == plain(b)
}

func plain(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }

// write updates the comment of a pull request, or creates it if the forge has none. The result is for the
// metrics, such as "unchanged".
func (w *writer) write(ctx context.Context, t *pullComment, p report.Pull) (result string, err error) {
	w.mu.Lock()
	longest := w.longest
	if t.again {
		t.again, t.read = false, false
	}
	w.mu.Unlock()
	o := TextOptions{Instance: w.instance, Forge: w.forge.Profile(), Limit: longest}
	text := Text(p, o)
	if !t.read {
		if err := w.find(ctx, t, p); err != nil {
			return "", err
		}
	}
	is := t.standing(p, o, text)
	if is == outdated || is == edited {
		result, err := w.edit(ctx, t, p.Number, text, longest)
		if !forge.Gone(err) {
			return result, err
		}
		// A user deleted it, or the token can no longer see it. A search decides.
		if err := w.find(ctx, t, p); err != nil {
			return "", err
		}
		if t.id != 0 {
			return "", err
		}
		is = t.standing(p, o, text)
	}
	if is == due || is == deleted {
		return w.create(ctx, t, p.Number, text, longest)
	}
	return "unchanged", nil
}

// edit replaces the text of an existing comment.
func (w *writer) edit(ctx context.Context, t *pullComment, number int64, text string, longest int) (result string, err error) {
	var now forge.Comment
	err = w.call(ctx, func(ctx context.Context) (err error) {
		now, err = w.forge.EditComment(ctx, number, t.id, text)
		return err
	})
	switch {
	case err == nil:
		t.text, t.foreign = text, false
		return "written", w.storeRecord(number, t.id, text, now)
	case forge.TooLong(err) && w.shorten(longest):
		return "", errTooLong
	case !forge.Gone(err):
		t.read = t.read && !commits.Unclear(err) // the comment may have the new text
	}
	return "", err
}

// create creates the first comment, or creates it again after somebody deleted it.
func (w *writer) create(ctx context.Context, t *pullComment, number int64, text string, longest int) (result string, err error) {
	var now forge.Comment
	err = w.call(ctx, func(ctx context.Context) (err error) {
		now, err = w.forge.CreateComment(ctx, number, text)
		return err
	})
	switch {
	case err == nil:
		t.id, t.text, t.gone, t.foreign = now.ID, text, false, false
		return "written", w.storeRecord(number, t.id, text, now)
	case forge.TooLong(err) && w.shorten(longest):
		return "", errTooLong
	case commits.Unclear(err):
		t.read = false // the comment may exist
	}
	return "", err
}

// shorten halves the limit for comments. It returns false if the limit is already the minimum.
func (w *writer) shorten(was int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was/2 < leastComment {
		return false
	}
	w.longest = min(w.longest, was/2)
	return true
}
