package pulls

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge"
)

// left is the record of a pull request that is no longer open. handed says that this watcher has passed its
// final state to the writer of comments.
type left struct {
	record
	handed bool
}

// empty reports whether nothing must be stored.
func (l left) empty() bool { return l.Comment == 0 && l.Last == nil }

// remember replaces the record of a pull request that is no longer open.
func (ps *pullRequests) remember(l left) {
	if ps.left[l.Number] = l; l.empty() {
		delete(ps.left, l.Number)
	}
}

// forget removes a pull request that is no longer open, and stores its remaining data.
func (ps *pullRequests) forget(k *openPull) {
	k.drop()
	delete(ps.open, k.Number)
	if err := ps.Git.Forget(ps.Forge.Profile().HeadRef(k.Number)); err != nil {
		ps.log.Warn("the mirror keeps a closed pull request", "number", k.Number, "error", err)
	}
	l := left{record{Number: k.Number, Comment: k.Comment, Left: true}, true}
	if k.shown.Ended() {
		last := k.shown.Last()
		if ps.Redact != nil {
			last = ps.Redact.Pull(last)
		}
		l.Last = &last
	}
	ps.images.closePull(k, func(tx *state.Tx) error { return ps.storeLeft(tx, l) })
	ps.remember(l)
}

// lastWords drops the final states that the forge already has. It sends the final states to the forge that
// the previous owner of the source could not deliver. That waits until the list of open pull requests was
// read, as listed reports, because a pull request that was reopened has not ended.
func (ps *pullRequests) lastWords(listed bool) {
	for number, l := range ps.left {
		switch {
		case l.Last == nil:
		case !l.handed && listed:
			l.handed = true
			ps.remember(l)
			ps.Display.Deliver(*l.Last)
		case l.handed && !ps.Display.Owes(ps.Source, number):
			l.Last = nil
			if ps.write(func(tx *state.Tx) error { return ps.storeLeft(tx, l) }) {
				ps.remember(l)
			}
		}
	}
}

// forgetComments forgets the newest read comment of a pull request that is no longer open, once list no
// longer contains any of the read comments.
func (ps *pullRequests) forgetComments(list []forge.Comment) {
	for number, l := range ps.left {
		if l.Comment != 0 && !slices.ContainsFunc(list, func(c forge.Comment) bool { return c.Number == number && c.ID <= l.Comment }) {
			l.Comment = 0
			ps.remember(l)
			ps.write(func(tx *state.Tx) error { return ps.storeLeft(tx, l) })
		}
	}
}
