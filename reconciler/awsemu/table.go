package awsemu

import (
	"encoding/json"
	"sort"
)

// table is a map with its keys kept in order, so that a page starts without
// sorting. It is saved as the map.
type table[V any] struct {
	rows map[string]V
	keys []string
}

// get returns a row, the zero value where there is none.
func (t *table[V]) get(key string) V { return t.rows[key] }

// has says whether there is a row.
func (t *table[V]) has(key string) bool {
	_, ok := t.rows[key]
	return ok
}

// put sets a row.
func (t *table[V]) put(key string, v V) {
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

// remove deletes a row.
func (t *table[V]) remove(key string) {
	if _, ok := t.rows[key]; !ok {
		return
	}
	delete(t.rows, key)
	i := sort.SearchStrings(t.keys, key)
	t.keys = append(t.keys[:i], t.keys[i+1:]...)
}

// len is the number of rows.
func (t *table[V]) len() int { return len(t.keys) }

// sorted returns the keys in order. The slice is the table's own.
func (t *table[V]) sorted() []string { return t.keys }

// MarshalJSON implements [json.Marshaler].
func (t table[V]) MarshalJSON() ([]byte, error) { return json.Marshal(t.rows) }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *table[V]) UnmarshalJSON(data []byte) error {
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
