package expression

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
)

// Update changes an item.
type Update struct{ actions []action }

// action is one change at a path.
type action struct {
	clause string // SET, ADD, DELETE or REMOVE
	path   Path
	args   []operand // SET: one, or two with a sign; ADD and DELETE: one
	sign   string    // SET: + or -
}

// typeNames has the names of types in the messages of ADD and DELETE.
var typeNames = map[string]string{
	"S": "STRING", "N": "NUMBER", "B": "BINARY", "BOOL": "BOOLEAN", "NULL": "NULL", "L": "LIST", "M": "MAP",
	"SS": "STRING_SET", "NS": "NUMBER_SET", "BS": "BINARY_SET",
}

func (p *parser) update() *Update {
	u := &Update{}
	seen := map[string]bool{}
	for more := true; more; more = !p.at("") {
		if !p.at("SET", "ADD", "DELETE", "REMOVE") {
			p.unexpected()
		}
		clause := strings.ToUpper(p.consume())
		if seen[clause] {
			p.refuse("The \"%s\" section can only be used once in an update expression;", clause)
		}
		seen[clause] = true
		for next := true; next; next = p.accept(",") {
			u.actions = append(u.actions, p.action(clause))
		}
	}
	p.apart(u.Paths().paths)
	return u
}

func (p *parser) action(clause string) action {
	a := action{clause: clause, path: p.path()}
	p.count()
	switch clause {
	case "SET":
		p.expect("=")
		a.args = []operand{p.assigned()}
		if p.at("+", "-") {
			a.sign = p.consume()
			a.args = append(a.args, p.assigned())
			for _, o := range a.args {
				p.typed(a.sign, o, "N")
			}
		}
	case "ADD", "DELETE":
		v := p.value()
		if !v.Set() && (clause != "ADD" || v.Type != "N") {
			p.refuse("Incorrect operand type for operator or function; operator: %s, operand type: %s, typeSet: ALLOWED_FOR_%s_OPERAND", clause, typeNames[v.Type], clause)
		}
		a.args = []operand{{value: v}}
	}
	return a
}

// assigned parses an operand of SET, and checks its functions.
func (p *parser) assigned() operand {
	o := p.operand()
	p.checkAssigned(o)
	return o
}

func (p *parser) checkAssigned(o operand) {
	if o.call == "if_not_exists" && o.args[0].path == nil {
		p.refuse("Operator or function requires a document path; operator or function: if_not_exists")
	}
	for _, arg := range o.args {
		if arg.call == "list_append" {
			p.misused("list_append")
		}
		if p.checkAssigned(arg); o.call == "list_append" {
			p.typed("list_append", arg, "L")
		}
	}
}

// Paths returns the paths that the update changes.
func (u *Update) Paths() *Projection {
	out := &Projection{}
	for _, a := range u.actions {
		out.paths = append(out.paths, a.path)
	}
	return out
}

// Each calls f for each attribute that the update changes. A nil update changes none.
func (u *Update) Each(f func(attribute string)) {
	if u == nil {
		return
	}
	for _, a := range u.actions {
		f(a.path.Attribute())
	}
}

// OnlyTakes reports whether the update has actions and can add nothing to an item.
func (u *Update) OnlyTakes() bool {
	return u != nil && !slices.ContainsFunc(u.actions, func(a action) bool { return a.clause == "SET" || a.clause == "ADD" })
}

// Apply returns the updated item as a new one. A nil update returns the item.
func (u *Update) Apply(item attr.Item) (attr.Item, error) {
	if u == nil {
		return item, nil
	}
	type change struct {
		action
		to *attr.Value
	}
	var changes []change
	for _, a := range u.actions {
		to, same, err := a.result(item)
		if err != nil {
			return nil, err
		}
		if !same {
			changes = append(changes, change{a, to})
		}
	}
	// New elements of a list are added in the order of their indexes. Removals come last, from the end, so
	// that all indexes refer to the original item.
	slices.SortStableFunc(changes, func(a, b change) int {
		takesA, takesB := a.clause == "REMOVE", b.clause == "REMOVE"
		switch {
		case takesA && takesB:
			return b.path.compare(a.path)
		case takesA != takesB:
			return map[bool]int{true: 1, false: -1}[takesA]
		}
		return cmp.Compare(a.path[len(a.path)-1].index, b.path[len(b.path)-1].index)
	})
	whole := attr.Value{Type: "M", Map: item}
	for _, c := range changes {
		next, ok := changed(whole, c.path, c.to)
		if !ok {
			return nil, attr.Invalid("The document path provided in the update expression is invalid for update")
		}
		whole = next
	}
	return whole.Map, nil
}

// result returns the action's value at its path, or nil for none. same says that the value does not change.
func (a action) result(item attr.Item) (to *attr.Value, same bool, err error) {
	old, there := a.path.in(item)
	var v attr.Value
	switch a.clause {
	case "REMOVE":
		return nil, false, nil
	case "SET":
		if v, err = a.args[0].assigned(item); err == nil && a.sign != "" {
			v, err = sum(v, a.sign, a.args[1], item)
		}
	case "ADD":
		switch v = *a.args[0].value; {
		case !there:
		case v.Type != old.Type:
			err = wrongType()
		case v.Type == "N":
			v.Number, err = old.Number.Plus(v.Number)
		default:
			v.List = slices.Concat(old.List, slices.DeleteFunc(slices.Clone(v.List), old.Has))
		}
	case "DELETE":
		v = *a.args[0].value
		switch {
		case !there:
			return nil, true, nil
		case v.Type != old.Type:
			return nil, false, wrongType()
		}
		if v.List = slices.DeleteFunc(slices.Clone(old.List), v.Has); len(v.List) == 0 {
			return nil, false, nil
		}
	}
	return &v, false, err
}

func wrongType() error {
	return attr.Invalid("An operand in the update expression has an incorrect data type")
}

func sum(v attr.Value, sign string, with operand, item attr.Item) (attr.Value, error) {
	w, err := with.assigned(item)
	switch {
	case err != nil:
		return v, err
	case v.Type != "N" || w.Type != "N":
		return v, wrongType()
	case sign == "-":
		w.Number = w.Number.Negated()
	}
	v.Number, err = v.Number.Plus(w.Number)
	return v, err
}

// assigned returns the value of an operand of SET.
func (o operand) assigned(item attr.Item) (attr.Value, error) {
	switch o.call {
	case "if_not_exists":
		if v, there := o.args[0].path.in(item); there {
			return v, nil
		}
		return o.args[1].assigned(item)
	case "list_append":
		a, err := o.args[0].assigned(item)
		if err != nil {
			return a, err
		}
		b, err := o.args[1].assigned(item)
		if err == nil && (a.Type != "L" || b.Type != "L") {
			err = wrongType()
		}
		return attr.Value{Type: "L", List: slices.Concat(a.List, b.List)}, err
	}
	v, ok := o.of(item)
	if !ok {
		return v, attr.Invalid("The provided expression refers to an attribute that does not exist in the item")
	}
	return v, nil
}
