package wire

import (
	"cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// WriteShape writes the members of a structure that belong to the shape of an answer.
func (w *XML) WriteShape(d Data, s *model.Shape) {
	for _, name := range s.Names {
		v, ok := d[name]
		if !ok {
			continue
		}
		m := s.Members[name]
		element := cmp.Or(m.Wire, name)
		switch v := v.(type) {
		case string:
			w.Text(element, v)
		case map[string]any:
			w.Open(element)
			w.WriteShape(v, m.Shape)
			w.Close(element)
		case []any:
			item := cmp.Or(m.Shape.Item.Wire, "member")
			w.Open(element)
			for _, v := range v {
				if text, isText := v.(string); isText {
					w.Text(item, text)
					continue
				}
				inner, _ := v.(map[string]any)
				w.Open(item)
				w.WriteShape(inner, m.Shape.Item.Shape)
				w.Close(item)
			}
			w.Close(element)
		}
	}
}
