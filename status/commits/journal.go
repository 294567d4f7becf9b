package commits

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/state"
)

// journal has the commits whose statuses are not finished, and the last commit of each
// source: a record for each commit, and parts with its targets and contexts, so that what
// is written is about what has changed.
//
//	SOURCE 0 SHA       the commit, and how many parts it has
//	SOURCE 0 SHA 0 NN  those of its targets and contexts whose names have this number
type journal struct {
	bucket string

	mu state.Turn // locked while it is written, before that of Commits
	// written are the hashes of the records, as they were read or written last.
	written map[string]uint64
}

// part is a part of a track.
type part struct {
	Targets  map[string]*targetTrack  `json:"targets,omitempty"`
	Contexts map[string]*contextTrack `json:"contexts,omitempty"`
}

const (
	// wholeUpTo is the number of targets and contexts up to which a commit is stored in one part; a
	// commit with more has partsOfMany.
	wholeUpTo, partsOfMany = 64, 32
	// atOnce is the number of records that are written in one transaction.
	atOnce = 40
)

func trackKey(source, sha string) string { return source + "\x00" + sha }

// read returns the tracks of a source, of all sources without one, in their order. It leaves out a
// record that it cannot understand, and returns that in broken: its statuses may stay pending,
// which is better than a daemon that does not start.
func (j *journal) read(store state.Store, source string) (tracks []*track, broken, err error) {
	records := map[string]json.RawMessage{}
	err = store.View(func(tx *state.Tx) error {
		clear(records)
		from := ""
		if source != "" {
			from = source + "\x00"
		}
		return (state.Bucket[json.RawMessage]{Name: j.bucket}).ForEach(tx, from, func(key string, value json.RawMessage) error {
			if !strings.HasPrefix(key, from) {
				return state.ErrStop
			}
			records[key] = slices.Clone(value)
			return nil
		})
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read status journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.written, func(key string, _ uint64) bool { return source == "" || strings.HasPrefix(key, source+"\x00") })
	for key, value := range records { // includes broken ones: the next write removes them
		j.written[key] = sum(value)
	}
	for key, value := range records {
		if strings.Count(key, "\x00") != 1 {
			continue
		}
		t, err := parse(key, value, records)
		if err != nil {
			broken = errors.Join(broken, fmt.Errorf("status journal: %q: %w", key, err))
			continue
		}
		tracks = append(tracks, t)
	}
	slices.SortFunc(tracks, func(a, b *track) int { return a.Turn - b.Turn })
	return tracks, broken, nil
}

func parse(key string, value json.RawMessage, records map[string]json.RawMessage) (*track, error) {
	t := &track{Targets: map[string]*targetTrack{}, Contexts: map[string]*contextTrack{}}
	if err := json.Unmarshal(value, t); err != nil {
		return nil, err
	}
	if t.Source == "" || t.SHA == "" || trackKey(t.Source, t.SHA) != key || t.Parts < 0 || t.Parts > partsOfMany {
		return nil, errors.New("it is of no commit")
	}
	for n := range t.Parts {
		var p part
		if raw, there := records[partKey(key, n)]; !there {
			continue
		} else if err := json.Unmarshal(raw, &p); err != nil {
			return nil, err
		}
		maps.Copy(t.Targets, p.Targets)
		maps.Copy(t.Contexts, p.Contexts)
	}
	for name, ct := range t.Contexts {
		if ct == nil || ct.Want.Context != name {
			return nil, fmt.Errorf("context %q is broken", name)
		}
	}
	for name, target := range t.Targets {
		if target == nil {
			return nil, fmt.Errorf("target %q is broken", name)
		}
	}
	return t, nil
}

func partKey(key string, n int) string { return fmt.Sprintf("%s\x00%02d", key, n) }

// records returns what the journal should contain of a track.
func (t *track) records(into map[string]json.RawMessage) error {
	key := trackKey(t.Source, t.SHA)
	if t.Parts = 1; len(t.Targets)+len(t.Contexts) > wholeUpTo {
		t.Parts = partsOfMany
	}
	parts := make([]part, t.Parts)
	for i := range parts {
		parts[i] = part{map[string]*targetTrack{}, map[string]*contextTrack{}}
	}
	for name, target := range t.Targets {
		parts[numberOf(name)%t.Parts].Targets[name] = target
	}
	for name, ct := range t.Contexts {
		parts[numberOf(name)%t.Parts].Contexts[name] = ct
	}
	head, err := json.Marshal(t)
	for i := range parts {
		if err == nil && len(parts[i].Targets)+len(parts[i].Contexts) > 0 {
			into[partKey(key, i)], err = json.Marshal(parts[i])
		}
	}
	into[key] = head
	return err
}

func numberOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return int(h.Sum32() >> 1)
}

func sum(value []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(value) // never fails
	return h.Sum64()
}

// write updates the records of the sources that have a store.
func (j *journal) write(should map[string]json.RawMessage, storeOf func(source string) state.Store) error {
	stores, changed := map[string]state.Store{}, map[string][]string{}
	add := func(key string) {
		source, _, _ := strings.Cut(key, "\x00")
		if _, known := stores[source]; !known {
			stores[source] = storeOf(source)
		}
		if stores[source] != nil {
			changed[source] = append(changed[source], key)
		}
	}
	for key, value := range should {
		if was, there := j.written[key]; !there || was != sum(value) {
			add(key)
		}
	}
	for key := range j.written {
		if should[key] == nil {
			add(key)
		}
	}
	for _, source := range slices.Sorted(maps.Keys(changed)) {
		keys := changed[source]
		slices.Sort(keys) // a commit goes before its parts, which say nothing without it
		for some := range slices.Chunk(keys, atOnce) {
			if err := j.writeSome(stores[source], some, should); err != nil {
				return fmt.Errorf("write status journal: %w", err)
			}
		}
	}
	return nil
}

func (j *journal) writeSome(store state.Store, keys []string, should map[string]json.RawMessage) error {
	bucket := state.Bucket[json.RawMessage]{Name: j.bucket}
	err := store.Update(func(tx *state.Tx) error {
		for _, key := range keys {
			err := bucket.Delete(tx, key)
			if value := should[key]; value != nil {
				err = bucket.Put(tx, key, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, key := range keys {
		switch value := should[key]; {
		case err != nil:
			delete(j.written, key) // whether it is there is not known
			if value == nil {
				j.written[key] = 0
			}
		case value == nil:
			delete(j.written, key)
		default:
			j.written[key] = sum(value)
		}
	}
	return err
}

// save writes the journal if a change must be in it before a write to a forge, or with all if any
// change is missing. Several workers may call it.
func (c *Commits) save(all bool) error {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	c.mu.Lock()
	for _, list := range c.tracks {
		for _, t := range list {
			c.sum(t)
		}
	}
	if !c.changed && (!all || !c.stale) {
		c.mu.Unlock()
		return nil
	}
	should, err := map[string]json.RawMessage{}, error(nil)
	for _, list := range append(slices.Collect(maps.Values(c.tracks)), c.waiting) {
		for i, t := range list {
			if t.Turn == 0 || i > 0 && t.Turn <= list[i-1].Turn {
				c.turn++
				t.Turn = c.turn
			}
			err = errors.Join(err, t.records(should))
		}
	}
	c.changed, c.stale = false, false
	c.mu.Unlock()
	if err == nil {
		err = c.journal.write(should, c.storeOf)
	}
	if err != nil {
		c.mu.Lock()
		c.changed = true
		c.mu.Unlock()
	}
	return err
}

// storeOf returns the store for the journal of a source, nil if another weir writes it.
func (c *Commits) storeOf(source string) state.Store {
	if c.o.Held == nil {
		return c.o.Store
	}
	return c.o.Held(source)
}
