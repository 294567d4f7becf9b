package relocation

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// confirmations is the prefix of two kinds of records. A question has the key PREFIX ID. It asks the owners
// whether they have read all earlier records. An answer has the key PREFIX ID / MEMBER. Members read records in
// the order of the writes, so a member that reads a question has read all records before it.
const confirmations = "heed/"

// question is the value of a question. Without targets, it is about all targets.
type question struct {
	Targets []string  `json:"targets,omitempty"`
	At      time.Time `json:"at"`
}

const (
	// readWithin is the longest time that a command waits for the owners to read its request.
	readWithin = 5 * time.Second
	// keepQuestions is the age from which the next question deletes an earlier one and its answers.
	keepQuestions = time.Minute
)

// Followers asks the owners of targets whether they have read all earlier requests: see commands.Members.
func (d *Dispatcher) Followers(ctx context.Context, targets []string) (by []string, all bool) {
	if len(d.scopesOf(targets)) == 0 {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	key := confirmations + hex.EncodeToString(random[:])
	value, err := json.Marshal(question{targets, time.Now().UTC()})
	if err == nil {
		err = d.write(ctx, append(d.expired(d.o.Mirror.Snapshot()), coord.Op{Key: key, Value: value, If: 0}))
	}
	if err != nil {
		d.o.Logger.Warn("cannot ask the owners whether they have read a command", "error", err)
		return nil, false
	}
	all = d.awaitFor(ctx, readWithin, func(now *coord.Snapshot) bool {
		by = by[:0]
		for _, r := range now.List(key + "/") {
			if name, err := url.PathUnescape(strings.TrimPrefix(r.Key, key+"/")); err == nil {
				by = append(by, name)
			}
		}
		owned := 0
		for _, scope := range d.scopesOf(targets) {
			o := now.Owner(scope)
			if o.Released || !now.Lives(o.Session) || !slices.Contains(by, o.Member) {
				return false
			}
			owned++
		}
		return owned > 0
	})
	return by, all
}

// scopesOf returns the keys of the scopes with any of the targets, or of all scopes without targets.
func (d *Dispatcher) scopesOf(targets []string) (keys []string) {
	for _, w := range d.o.Wanted() {
		if strings.HasPrefix(w.Key, "scope/") && (len(targets) == 0 || slices.ContainsFunc(w.Targets, func(t string) bool { return slices.Contains(targets, t) })) {
			keys = append(keys, w.Key)
		}
	}
	return keys
}

// answerConfirmations answers questions about scopes that this member owns. asked contains the questions that it has
// looked at, so that it looks at each one once.
func (d *Dispatcher) answerConfirmations(ctx context.Context, now *coord.Snapshot, asked map[string]bool) {
	list := now.List(confirmations)
	var ops []coord.Op
	for _, r := range list {
		if strings.Contains(strings.TrimPrefix(r.Key, confirmations), "/") || asked[r.Key] || len(ops) == coord.MaxOps/2 {
			continue
		}
		asked[r.Key] = true
		var q question
		if json.Unmarshal(r.Value, &q) == nil && slices.ContainsFunc(d.scopesOf(q.Targets), func(key string) bool { return d.o.Keeper.Lease(key) != nil }) {
			ops = append(ops, coord.Op{Key: r.Key + "/" + url.PathEscape(d.o.Member), If: coord.Any})
		}
	}
	for key := range asked {
		if now.Get(key).Version == 0 {
			delete(asked, key)
		}
	}
	if len(ops) == 0 {
		return
	}
	if err := d.write(ctx, ops); err != nil {
		d.o.Logger.Warn("cannot confirm that this member has read a command; the command only reports that the request is stored", "error", err)
	}
}

// expired returns operations that delete questions older than keepQuestions, and their answers.
func (d *Dispatcher) expired(now *coord.Snapshot) (out []coord.Op) {
	for _, r := range now.List(confirmations) {
		id, _, _ := strings.Cut(strings.TrimPrefix(r.Key, confirmations), "/")
		var q question
		if err := json.Unmarshal(now.Get(confirmations+id).Value, &q); (err != nil || time.Since(q.At) > keepQuestions) && len(out) < coord.MaxOps/2 {
			out = append(out, coord.Op{Key: r.Key, Delete: true, If: coord.Any})
		}
	}
	return out
}
