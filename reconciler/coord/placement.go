package coord

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

// pinKeys is the prefix of the records that name the member that a person chose for a key.
const pinKeys = "coord/pin/"

// pin is the value of such a record.
type pin struct {
	Member string    `json:"member"`
	At     time.Time `json:"at"`
}

// Pin makes the operation that chooses a member as a key's owner, for as long as the member lives.
func Pin(key, member string, at time.Time) (Op, error) {
	value, err := json.Marshal(pin{member, at.UTC()})
	return Op{Key: pinKeys + key, Value: value, If: Any}, err
}

// pinsIn returns the members that people chose, by key.
func pinsIn(now *Snapshot) map[string]string {
	chosen := map[string]string{}
	for _, r := range now.List(pinKeys) {
		var p pin
		if json.Unmarshal(r.Value, &p) == nil {
			chosen[strings.TrimPrefix(r.Key, pinKeys)] = p.Member
		}
	}
	return chosen
}

// placement proposes an owner for each key. It calls Place again only if its input has changed.
type placement struct {
	// These fields hold the last proposal. Only the goroutine that runs steps uses them, except owners.
	snapshot *Snapshot
	scopes   []Scope
	// pins names the members that people chose, by key.
	pins map[string]string

	mu     sync.Mutex // of writes to owners, and of reads by other goroutines
	owners map[string]string
}

// update proposes owners from the keys and members of a snapshot.
func (p *placement) update(now *Snapshot, scopes []Scope) {
	if now == p.snapshot && slices.Equal(scopes, p.scopes) {
		return
	}
	p.snapshot, p.scopes, p.pins = now, slices.Clone(scopes), pinsIn(now)
	var members []string
	for _, a := range now.Alive {
		if !a.Member.Draining {
			members = append(members, a.Member.Name)
		}
	}
	placed := slices.Clone(scopes)
	for i, s := range placed {
		o := now.Owner(s.Key)
		if placed[i].Owner, placed[i].Pinned = o.Member, p.pins[s.Key]; o.Released {
			placed[i].Owner = o.For
		}
	}
	owners := Place(placed, members)
	p.mu.Lock()
	p.owners = owners
	p.mu.Unlock()
}

// proposed returns the proposed owners, by key. The caller must not change the result.
func (p *placement) proposed() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owners
}
