package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// syntaxLine is how the parser begins its errors.
var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Parse reads the one document that content holds, of at most most bytes. It returns nil
// after a fault without which there is no document.
func (d *Decoder) Parse(content []byte, most int) *yaml.Node {
	if len(content) > most {
		d.Error(nil, nil, "too-large", fmt.Sprintf("%s has %d bytes, more than %d", d.Whole, len(content), most), "")
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
		d.syntax(err)
		return nil
	}
	if err := dec.Decode(&second); err == nil {
		d.Error(&second, nil, "several-documents", "the file holds more than one YAML document", "")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
		return nil
	}
	return doc.Content[0]
}

func (d *Decoder) syntax(err error) {
	at, text := &yaml.Node{}, err.Error()
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		at.Line, _ = strconv.Atoi(m[1]) // empty where the parser knows no line
		text = text[len(m[0]):]
	}
	d.Error(at, nil, "yaml-syntax", "no valid YAML: "+text, "")
}
