package model

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// CheckAnswer checks the body of a successful answer against the operation.
func (op *Operation) CheckAnswer(body []byte) []Fault {
	c := checker{sv: op.Service, answer: true}
	out := op.Out
	if out == nil {
		out = &Shape{Type: "structure"}
	}
	if op.Service.Protocol != "ec2" && op.Service.Protocol != "query" {
		object, err := Object(body)
		if err != nil {
			return []Fault{{Kind: Type, Path: op.Name, Rule: err.Error()}}
		}
		c.value(out, op.Output, object, "")
		return c.faults
	}
	c.text = true
	root, err := parseXML(body)
	if err != nil {
		return []Fault{{Kind: Type, Path: op.Name, Rule: err.Error()}}
	}
	if root.name != op.Name+"Response" {
		c.faults = append(c.faults, Fault{Kind: Unknown, Path: root.name})
	}
	from := root
	if op.Service.Protocol == "query" {
		from = &node{}
		for _, kid := range root.kids {
			switch kid.name {
			case op.Wrapper:
				from = kid
			case "ResponseMetadata":
			default:
				c.faults = append(c.faults, Fault{Kind: Unknown, Path: kid.name})
			}
		}
	}
	c.value(out, op.Output, c.plain(from, out, ""), "")
	return c.faults
}

// node is an XML element.
type node struct {
	name, text string
	kids       []*node
}

func parseXML(body []byte) (*node, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	top := &node{}
	open := []*node{top}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		at := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			kid := &node{name: t.Name.Local}
			at.kids = append(at.kids, kid)
			open = append(open, kid)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			at.text += string(t)
		}
	}
	if len(top.kids) != 1 {
		return nil, fmt.Errorf("%d documents", len(top.kids))
	}
	return top.kids[0], nil
}

// plain returns an element as a value of the shape. Elements that the shape does not have are errors.
func (c *checker) plain(n *node, s *Shape, path string) any {
	unknown := func(name string) { c.faults = append(c.faults, Fault{Kind: Unknown, Path: join(path, name)}) }
	switch s.Type {
	case "structure":
		byWire := map[string]string{}
		if c.sv.Protocol == "ec2" && path == "" {
			// EC2 adds the first to every answer, and the second to answers without members. Its model
			// contains neither.
			byWire = map[string]string{"requestId": "", "return": ""}
		}
		for name, m := range s.Members {
			byWire[cmp.Or(m.Wire, name)] = name
		}
		out := map[string]any{}
		for _, kid := range n.kids {
			name, known := byWire[kid.name]
			switch {
			case !known || out[name] != nil:
				unknown(kid.name)
			case name != "":
				out[name] = c.plain(kid, s.Members[name].Shape, join(path, kid.name))
			}
		}
		return out
	case "list":
		element := "member"
		if s.Item.Wire != "" {
			element = s.Item.Wire
		}
		items := []any{}
		for i, kid := range n.kids {
			if kid.name != element {
				unknown(kid.name)
				continue
			}
			items = append(items, c.plain(kid, s.Item.Shape, join(path, strconv.Itoa(i+1))))
		}
		return items
	}
	if len(n.kids) > 0 {
		unknown(n.kids[0].name)
	}
	if s.Type == "string" {
		return n.text
	}
	return strings.TrimSpace(n.text)
}
