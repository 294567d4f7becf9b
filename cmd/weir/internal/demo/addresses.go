package demo

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"

	"go.yaml.in/yaml/v3"
)

// existingConfig contains the addresses of the demo in an existing configuration.
type existingConfig struct {
	// text is the content of the file, nil if the file is missing.
	text      []byte
	page, aws span
}

// span is an address in a configuration with the start and end of its text. It is empty if the demo cannot
// have written it.
type span struct {
	address    string
	start, end int
}

func (p span) or(preferred string) string {
	if p.address == "" {
		return preferred
	}
	return p.address
}

// readAddresses finds the addresses of the page and of the embedded AWS in an existing configuration, so that
// the demo uses or replaces them. It returns only loopback addresses, because the demo writes no others. A
// missing file gives no addresses, and so does a faulty one: the reader of the configuration reports faults.
func readAddresses(file string) (existingConfig, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return existingConfig{}, nil
	}
	if err != nil {
		return existingConfig{}, err
	}
	a := existingConfig{text: text}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) != 1 {
		return a, nil
	}
	if n := valueOf(doc.Content[0], "listen"); n != nil && loopback(n.Value) {
		a.page = spanOf(text, n, n.Value)
	}
	if n := valueOf(valueOf(doc.Content[0], "aws"), "endpoint"); n != nil {
		if u, err := url.Parse(n.Value); err == nil && u.Scheme == "http" && loopback(u.Host) {
			a.aws = spanOf(text, n, u.Host)
		}
	}
	return a, nil
}

// with returns the configuration with other addresses.
func (a existingConfig) with(page, aws string) []byte {
	first, second := edit{a.page, page}, edit{a.aws, aws}
	if first.start < second.start {
		first, second = second, first
	}
	return second.in(first.in(a.text)) // the later one first, so that the position of the other one stays valid
}

// edit replaces the text of a span.
type edit struct {
	span
	text string
}

func (e edit) in(text []byte) []byte {
	if e.address == "" {
		return text
	}
	return bytes.Join([][]byte{text[:e.start], text[e.end:]}, []byte(e.text))
}

// valueOf returns the value of a key of a mapping, nil if the key is missing.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// spanOf returns the span of a scalar, between its quotes if it has some.
func spanOf(text []byte, n *yaml.Node, address string) span {
	start := 0
	for range n.Line - 1 {
		next := bytes.IndexByte(text[start:], '\n')
		if next < 0 {
			return span{}
		}
		start += next + 1
	}
	start += n.Column - 1
	if start < len(text) && (text[start] == '"' || text[start] == '\'') {
		start++
	}
	if start > len(text) || !bytes.HasPrefix(text[start:], []byte(n.Value)) {
		return span{}
	}
	return span{address: address, start: start, end: start + len(n.Value)}
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
