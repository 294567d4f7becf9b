package forgehttp

import "io"

// longestText is the maximum size of each text in a JSON document, in bytes as encoded. The description of
// a pull request or a comment may have any length, and libraries read the texts of a whole page at once.
// Longer texts are truncated.
const longestText = 64 << 10

// clipped reads a JSON document and truncates its texts, each at the end of a character or of an escape.
type clipped struct {
	r      io.Reader
	quoted bool
	length int // of the current text so far
	// escape is the number of remaining characters of \u1234. opened says that only the backslash of an
	// escape was read.
	escape int
	cut    bool
}

const opened = -1

// Read implements io.Reader.
func (c *clipped) Read(p []byte) (int, error) {
	for {
		n, err := c.r.Read(p)
		kept := 0
		for _, b := range p[:n] {
			if c.accept(b) {
				p[kept] = b
				kept++
			}
		}
		if kept > 0 || err != nil || n == 0 {
			return kept, err
		}
	}
}

// accept processes the next byte, and reports whether the truncated document contains it.
func (c *clipped) accept(b byte) bool {
	switch {
	case !c.quoted:
		c.quoted, c.length, c.escape, c.cut = b == '"', 0, 0, false
		return true
	case c.escape == 0 && b == '"':
		c.quoted = false
		return true
	case c.escape == 0 && b&0xC0 != 0x80: // the start of a character
		c.cut = c.length >= longestText
	}
	switch {
	case c.escape == opened && b == 'u':
		c.escape = 4
	case c.escape == opened:
		c.escape = 0
	case c.escape > 0:
		c.escape--
	case b == '\\':
		c.escape = opened
	}
	c.length++
	return !c.cut
}
