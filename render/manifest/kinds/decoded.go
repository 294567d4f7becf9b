package kinds

import "reflect"

// Values is an object's spec with its defaults, as JSON has it: maps, lists, text,
// int64, float64 and bool. What weir passes over is left out. ok is false for an object
// of a kind that weir does not read.
func Values(o Object) (spec map[string]any, ok bool) {
	k, ok := findKind(known(), o.Ref)
	if !ok || k.use != read {
		return nil, false
	}
	v := reflect.New(k.object)
	Decode(o, &Faults{}, v.Interface())
	p := plainer{Version(o.Ref.APIVersion), &decoder{tables: map[reflect.Type][]field{}}}
	spec, _ = p.value(v.Elem().FieldByName("Spec")).(map[string]any)
	return spec, true
}

// plainer turns decoded values into maps, lists and scalars.
type plainer struct {
	version string
	*decoder
}

// plain is a type that reads a node in its own way and says what it read, nil
// for nothing.
type plain interface{ plain(version string) any }

func (p plainer) value(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		return p.value(v.Elem())
	}
	if s, ok := v.Interface().(plain); ok {
		return s.plain(p.version)
	}
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = p.value(v.Index(i))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		out := map[string]any{}
		for _, k := range v.MapKeys() {
			out[k.String()] = p.value(v.MapIndex(k))
		}
		return out
	case reflect.Struct:
		return p.structure(v)
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	}
	return v.Int()
}

func (p plainer) structure(v reflect.Value) map[string]any {
	out := map[string]any{}
	for _, f := range p.fields(v.Type()) {
		if f.in(p.version) {
			if item := p.value(v.FieldByIndex(f.index)); item != nil {
				out[f.name] = item
			}
		}
	}
	return out
}

func (v Duration) plain(string) any { return v.String() }

func (v Free) plain(string) any { return v.Value }

func (Anything) plain(string) any { return nil }

func (v kubeletArgs) plain(version string) any {
	if v == nil {
		return nil
	}
	if version != "v1beta2" {
		out := map[string]any{}
		for _, a := range v {
			out[a.Name] = a.Value
		}
		return out
	}
	out := make([]any, len(v))
	for i, a := range v {
		out[i] = map[string]any{"name": a.Name, "value": a.Value}
	}
	return out
}

func (v currentNetwork) plain(string) any {
	p := plainer{"v1beta2", &decoder{tables: map[reflect.Type][]field{}}}
	return p.structure(reflect.ValueOf(Network(v)))
}
