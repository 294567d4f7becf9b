package fleet

import "testing"

// TestEffects lists all effects of a proposal on a target.
func TestEffects(t *testing.T) {
	for name, tc := range map[string]struct {
		target    part
		selection selection
		want      effect
	}{
		"nothing that it reads has changed":                       {part{}, plansOfTouched, none},
		"a file that it reads has changed":                        {part{touched: true}, plansOfTouched, changes},
		"its directory is new":                                    {part{touched: true}, plansOfTouched, changes},
		"its directory is gone":                                   {part{removed: true}, plansOfTouched, removes},
		"its directory is gone, and all plans are requested":      {part{removed: true}, plansOfAll, removes},
		"its directory is gone, and other plans are requested":    {part{removed: true}, plansOfNamed, removes},
		"it has not changed, and all plans are requested":         {part{}, plansOfAll, requested},
		"it has not changed, and its plan is requested":           {part{named: true}, plansOfNamed, requested},
		"it has changed, and its plan is requested":               {part{touched: true, named: true}, plansOfNamed, requested},
		"it has changed, and only the plans of other targets are": {part{touched: true}, plansOfNamed, none},
		"its files cannot be read":                                {part{unread: true}, plansOfTouched, unclear},
		"a file has changed, and another one cannot be read":      {part{touched: true, unread: true}, plansOfTouched, changes},
		"its files cannot be read, and its plan is requested":     {part{unread: true, named: true}, plansOfNamed, requested},
		"its files cannot be read, and other plans are requested": {part{unread: true}, plansOfNamed, unclear},
	} {
		if got := effectOf(tc.target, tc.selection); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	for want, p := range map[selection]Proposal{
		plansOfTouched: {},
		plansOfAll:     {All: true},
		plansOfNamed:   {All: true, Only: []string{"web"}},
	} {
		if got := selectionOf(p); got != want {
			t.Errorf("%+v asks for %q, want %q", p, got, want)
		}
	}
}
