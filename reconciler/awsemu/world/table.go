package world

import (
	"encoding/json"
	"sort"
)

// Table is a map with sorted keys, so that a page can start without sorting. Its JSON is the map's.
type Table[V any] struct {
	rows map[string]V
	keys []string
}

// Get returns a row, or the zero value if none exists.
func (t *Table[V]) Get(key string) V { return t.rows[key] }

// Has reports whether a row exists.
func (t *Table[V]) Has(key string) bool {
	_, ok := t.rows[key]
	return ok
}

// Put sets a row.
func (t *Table[V]) Put(key string, v V) {
	if t.rows == nil {
		t.rows = map[string]V{}
	}
	if _, ok := t.rows[key]; !ok {
		i := sort.SearchStrings(t.keys, key)
		t.keys = append(t.keys, "")
		copy(t.keys[i+1:], t.keys[i:])
		t.keys[i] = key
	}
	t.rows[key] = v
}

// Remove deletes a row.
func (t *Table[V]) Remove(key string) {
	if _, ok := t.rows[key]; !ok {
		return
	}
	delete(t.rows, key)
	i := sort.SearchStrings(t.keys, key)
	t.keys = append(t.keys[:i], t.keys[i+1:]...)
}

// Len returns the number of rows.
func (t *Table[V]) Len() int { return len(t.keys) }

// Sorted returns the sorted keys. The caller must not change the slice.
func (t *Table[V]) Sorted() []string { return t.keys }

// MarshalJSON implements [json.Marshaler].
func (t Table[V]) MarshalJSON() ([]byte, error) { return json.Marshal(t.rows) }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Table[V]) UnmarshalJSON(data []byte) error {
	var rows map[string]V
	if err := json.Unmarshal(data, &rows); err != nil {
		return err
	}
	t.rows = rows
	t.keys = make([]string, 0, len(rows))
	for key := range rows {
		t.keys = append(t.keys, key)
	}
	sort.Strings(t.keys)
	return nil
}
