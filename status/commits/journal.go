package commits

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
)

// journal stores the commits whose statuses are not finished, and the last commit of every source. A
// commit has a record of its own, and parts with its targets and contexts, so that a write
// is little larger than the change.
//
//	SOURCE 0 SHA       the commit, and the number of its parts
//	SOURCE 0 SHA 0 NN  the targets and contexts whose names have this number
type journal struct {
	bucket string
	// storeOf returns the store for the journal of a source, nil if another weir writes it.
	storeOf func(source string) state.Store
	log     *slog.Logger
	now     func() time.Time
	// statuses contains the statuses of every source that has a forge.
	statuses map[string]*statuses

	mu state.Turn // guards the fields below, also during a write; lock it before statuses
	// written contains the hashes of the records as last read or written.
	written map[string]uint64
	turn    int // the last turn of a track
	// orphans are commits of sources without a forge. They stay in the journal until a forge is configured
	// again.
	orphans []*track
	// failed says that the last write failed. broken says that the journal has unreadable records, which
	// the next write removes.
	failed, broken bool
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
	// atOnce is the maximum number of records in one transaction.
	atOnce = 40
)

func trackKey(source, sha string) string { return source + "\x00" + sha }

// restore reads the commits of a source, or of all sources for an empty name, from a store. It skips
// unreadable records: their statuses may stay pending, but the daemon can start.
func (j *journal) restore(store state.Store, source string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	tracks, broken, err := j.read(store, source)
	if err != nil {
		return err
	}
	if broken != nil {
		j.log.Error("some records of the status journal cannot be read, and weir removes them; the statuses of their commits may stay pending", "error", broken)
		j.broken = true
	}
	by := map[string][]*track{}
	for _, t := range tracks {
		j.turn = max(j.turn, t.Turn)
		switch {
		case j.statuses[t.Source] != nil:
			by[t.Source] = append(by[t.Source], t)
		case !t.finished():
			j.log.Warn("commit statuses are left pending: their source has no forge any more", "source", t.Source, "revision", t.SHA)
			j.orphans = append(j.orphans, t)
		}
	}
	for name, s := range j.statuses {
		if source == "" || name == source {
			s.restore(by[name], j.now())
		}
	}
	return nil
}

// read returns the tracks of a source, or of all sources, in their order. broken describes the unreadable
// records. The caller holds mu.
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
	maps.DeleteFunc(j.written, func(key string, _ uint64) bool { return source == "" || strings.HasPrefix(key, source+"\x00") })
	for key, value := range records { // includes broken records: the next write removes them
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

// parse returns the track of a commit from the record with the given key and the records of its parts.
// Missing parts are empty.
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

// records adds the journal records that a track should have: one for the commit, and one for each part that
// is not empty. A large track has more parts, so that a change rewrites only a part.
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

// numberOf returns the number of the part that a target or context belongs to.
func numberOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return int(h.Sum32() >> 1)
}

// sum returns the hash of a record.
func sum(value []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(value) // never fails
	return h.Sum64()
}

// write updates the records of the sources that have a store. The caller holds mu.
func (j *journal) write(should map[string]json.RawMessage) error {
	stores, changed := map[string]state.Store{}, map[string][]string{}
	add := func(key string) {
		source, _, _ := strings.Cut(key, "\x00")
		if _, known := stores[source]; !known {
			stores[source] = j.storeOf(source)
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
		slices.Sort(keys) // a commit before its parts, which are useless without it
		for some := range slices.Chunk(keys, atOnce) {
			if err := j.writeSome(stores[source], some, should); err != nil {
				return fmt.Errorf("write status journal: %w", err)
			}
		}
	}
	return nil
}

// writeSome writes or deletes the records of keys in one transaction, and remembers the result. It deletes
// a key that should does not have. After an error, the state of the records is unknown.
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
			delete(j.written, key) // the record may or may not exist
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

// save writes the journal if a change must be stored before the next write to a forge, or if the last write
// failed. If all is true, it also writes if any other change is not stored yet, or if the journal has unreadable
// records. It is safe for concurrent use.
func (j *journal) save(all bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	due := j.failed || all && j.broken
	for _, s := range j.statuses {
		due = s.unsaved(all) || due
	}
	if !due {
		return nil
	}
	should := map[string]json.RawMessage{}
	err := records(j.orphans, should, &j.turn)
	for _, s := range j.statuses {
		err = errors.Join(err, s.records(should, &j.turn))
	}
	if err == nil {
		err = j.write(should)
	}
	if j.failed = err != nil; err == nil {
		j.broken = false
	}
	return err
}
