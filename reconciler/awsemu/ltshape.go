package awsemu

import "github.com/weir-gitops/weir/reconciler/awsemu/model"

// writeShape writes the members of a structure that the shape of an answer has.
func (w *xmlWriter) writeShape(d ltData, s *model.Shape) {
	for _, name := range s.Names {
		v, ok := d[name]
		if !ok {
			continue
		}
		m := s.Members[name]
		element := first(m.Wire, name)
		switch v := v.(type) {
		case string:
			w.text(element, v)
		case map[string]any:
			w.open(element)
			w.writeShape(v, m.Shape)
			w.close(element)
		case []any:
			item := first(m.Shape.Item.Wire, "member")
			w.open(element)
			for _, v := range v {
				if text, isText := v.(string); isText {
					w.text(item, text)
					continue
				}
				inner, _ := v.(map[string]any)
				w.open(item)
				w.writeShape(inner, m.Shape.Item.Shape)
				w.close(item)
			}
			w.close(element)
		}
	}
}
