package awsemu

import "strconv"

// fieldKind is the type of a launch template field.
type fieldKind int

const (
	kindText fieldKind = iota
	kindBool
	kindInt
	kindNumber
	kindTime
	kindStruct
	kindTexts // a list of texts
	kindList  // a list of structures
)

// ltField describes a member of RequestLaunchTemplateData and of its twin
// ResponseLaunchTemplateData: its name in the API, in requests and in answers.
type ltField struct {
	name   string
	wire   string
	reply  string
	item   string // the element of a list's items
	kind   fieldKind
	must   bool
	values []string // an enumeration's values
	fields []ltField
}

func field(kind fieldKind, name string) ltField {
	return ltField{name: name, wire: name, reply: lowerFirst(name), item: "item", kind: kind}
}

func textField(name string) ltField   { return field(kindText, name) }
func boolField(name string) ltField   { return field(kindBool, name) }
func intField(name string) ltField    { return field(kindInt, name) }
func numberField(name string) ltField { return field(kindNumber, name) }
func timeField(name string) ltField   { return field(kindTime, name) }

func structField(name string, fields ...ltField) ltField {
	f := field(kindStruct, name)
	f.fields = fields
	return f
}

func textsField(name, wire, reply string) ltField {
	f := field(kindTexts, name)
	f.wire, f.reply = wire, reply
	return f
}

func listField(name, wire, reply string, fields ...ltField) ltField {
	f := field(kindList, name)
	f.wire, f.reply, f.fields = wire, reply, fields
	return f
}

func (f ltField) oneOf(values ...string) ltField {
	f.values = values
	return f
}

func (f ltField) items(element string) ltField {
	f.item = element
	return f
}

func (f ltField) required() ltField {
	f.must = true
	return f
}

// parseFields reads the members of a structure.
func parseFields(p *params, fields []ltField) ltData {
	out := ltData{}
	for i := range fields {
		f := &fields[i]
		if !p.has(f.wire) {
			if f.must {
				p.reject(p.top.dialect.missingParam(p.name(f.wire)))
			}
			continue
		}
		switch f.kind {
		case kindStruct:
			out[f.name] = map[string]any(parseFields(p.sub(f.wire), f.fields))
		case kindList:
			items := []any{}
			for _, it := range p.list(f.wire) {
				items = append(items, map[string]any(parseFields(it, f.fields)))
			}
			if len(items) > 0 {
				out[f.name] = items
			}
		case kindTexts:
			items := []any{}
			for _, text := range p.strings(f.wire) {
				f.checkValue(p, text)
				items = append(items, text)
			}
			if len(items) > 0 {
				out[f.name] = items
			}
		default:
			if text, ok := f.parseScalar(p); ok {
				out[f.name] = text
			}
		}
	}
	return out
}

// parseScalar reads a scalar into the text that answers carry.
func (f *ltField) parseScalar(p *params) (string, bool) {
	switch f.kind {
	case kindBool:
		if b := p.optionalBool(f.wire); b != nil {
			return strconv.FormatBool(*b), true
		}
		return "", false
	case kindInt:
		n := p.optionalInt(f.wire)
		if n == nil {
			return "", false
		}
		if *n > 1<<31-1 || *n < -1<<31 {
			p.bad(f.wire, p.text(f.wire), "Expected a 32-bit integer.")
		}
		return decimal(*n), true
	case kindNumber:
		if n := p.optionalFloat(f.wire); n != nil {
			return strconv.FormatFloat(*n, 'f', -1, 64), true
		}
		return "", false
	case kindTime:
		if t := p.optionalTime(f.wire); t != nil {
			return t.Format(xmlTime), true
		}
		return "", false
	}
	text := p.optional(f.wire)
	if text == nil {
		return "", false
	}
	f.checkValue(p, *text)
	return *text, true
}

func (f *ltField) checkValue(p *params, text string) {
	if f.values != nil && !contains(f.values, text) {
		p.bad(f.wire, text, "Member must satisfy enum value set.")
	}
}

// writeFields writes the members of a structure.
func (w *xmlWriter) writeFields(d ltData, fields []ltField) {
	for i := range fields {
		f := &fields[i]
		v, ok := d[f.name]
		if !ok {
			continue
		}
		switch v := v.(type) {
		case string:
			w.text(f.reply, v)
		case map[string]any:
			w.open(f.reply)
			w.writeFields(v, f.fields)
			w.close(f.reply)
		case []any:
			w.open(f.reply)
			for _, item := range v {
				if text, isText := item.(string); isText {
					w.text(f.item, text)
					continue
				}
				m, _ := item.(map[string]any)
				w.open(f.item)
				w.writeFields(m, f.fields)
				w.close(f.item)
			}
			w.close(f.reply)
		}
	}
}
