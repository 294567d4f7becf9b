package forgehttp

import (
	"fmt"
	"io"
)

// maxValues is the maximum number of values in a response. A page of a hundred pull requests has about
// 50,000. A list of empty objects has three bytes each in transit, and needs a hundred times as much memory
// when it is decoded.
const maxValues = 300_000

// counted counts the values of a JSON document while it is read, and returns an error if there are too
// many. Other documents contain few of JSON's delimiters.
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
