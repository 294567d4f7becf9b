package forgehttp

import (
	"fmt"
	"io"
)

// maxValues bounds the values in one answer. A page of a hundred pull requests has
// some 50,000; a list of empty objects, three bytes each on the wire, becomes a
// hundred times as much where it is decoded.
const maxValues = 300_000

// counted counts the values of a JSON document while it is read, and ends where there
// are too many. Other documents have few of JSON's signs.
type counted struct {
	r                 io.Reader
	values            int
	quoted, afterBack bool
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	for _, b := range p[:n] {
		switch {
		case c.afterBack:
			c.afterBack = false
		case c.quoted && b == '\\':
			c.afterBack = true
		case b == '"':
			c.quoted = !c.quoted
		case !c.quoted && (b == ',' || b == '{' || b == '['):
			c.values++
		}
	}
	if c.values > maxValues {
		return 0, fmt.Errorf("the answer has more than %d values", maxValues)
	}
	return n, err
}
