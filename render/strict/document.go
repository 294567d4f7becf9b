package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Parse parses the single document in content, which may have up to most bytes. It returns nil if a fault
// leaves no document.
func (d *Decoder) Parse(content []byte, most int) *yaml.Node {
	if len(content) > most {
		d.Error(nil, nil, "too-large", fmt.Sprintf("%s has %d bytes, more than %d", d.Whole, len(content), most), "")
		return nil
	}
	if line, column, summary := Undecodable(content); line > 0 {
		d.Error(&yaml.Node{Line: line, Column: column}, nil, "yaml-syntax", summary, UndecodableHint)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(content))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && IsNull(doc.Content[0]):
		d.Error(nil, nil, "empty", d.Whole+" is empty", "")
		return nil
	case err != nil:
		d.syntax(err, content)
		return nil
	}
	if err := dec.Decode(&second); err == nil {
		d.Error(&second, nil, "several-documents", "the file has more than one YAML document", "")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err, content)
		return nil
	}
	return doc.Content[0]
}

func (d *Decoder) syntax(err error, content []byte) {
	line, summary := SyntaxError(err, content)
	d.Error(&yaml.Node{Line: line}, nil, "yaml-syntax", "no valid YAML: "+summary, "")
}
