package forgehttp

import "io"

// longestText bounds each text of a JSON document, in bytes as it is written: a forge's
// description of a pull request or a comment may be without bound, and a library reads
// the texts of a whole page at once. The rest is left out.
const longestText = 64 << 10

// clipped passes a JSON document on with its texts cut, each at the end of a character
// or of an escape.
type clipped struct {
	r      io.Reader
	quoted bool
	length int // of the text so far
	// escape counts the missing characters of \u1234, and is opened while only its backslash was
	// read.
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
			if c.keep(b) {
				p[kept] = b
				kept++
			}
		}
		if kept > 0 || err != nil || n == 0 {
			return kept, err
		}
	}
}

func (c *clipped) keep(b byte) bool {
	switch {
	case !c.quoted:
		c.quoted, c.length, c.escape, c.cut = b == '"', 0, 0, false
		return true
	case c.escape == 0 && b == '"':
		c.quoted = false
		return true
	case c.escape == 0 && b&0xC0 != 0x80: // a character begins
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
