package page

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/instances"
)

// Instances reads facts about instances that passes do not read.
type Instances interface {
	// AddFacts adds the facts about an instance of a pool.
	AddFacts(ctx context.Context, a *instances.Answer) error
	// Facts returns facts about instances of a target, by id.
	Facts(ctx context.Context, target string, ids []string) (map[string]*instances.Facts, error)
}

// apiInstance serves /api/v1/instances/ID: an instance, by its id or by the beginning of it.
func (w *web) apiInstance(rw http.ResponseWriter, r *http.Request) {
	id, err := instances.ParseID(r.PathValue("id"))
	if err != nil {
		refuse(rw, w.o.Logger, http.StatusBadRequest, apiFault{Message: err.Error(), Hint: instances.Hint})
		return
	}
	found := instances.Find(w.current.Targets.All(), id)
	switch len(found) {
	case 1:
		w.sendJSON(rw, r, instanceViews{&w.views}.describe(r.Context(), found[0]))
	case 0:
		refuse(rw, w.o.Logger, http.StatusNotFound, apiFault{Message: id.Unknown(), Hint: "to look it up in AWS directly, run: weir instance " + id.Text + " --region REGION"})
	default:
		var matches []string
		for _, f := range found {
			matches = append(matches, f.Instance.ID)
		}
		refuse(rw, w.o.Logger, http.StatusConflict, apiFault{Message: id.Ambiguous(matches), Hint: "give more digits"})
	}
}

// instanceViews prepares instances for the page and the API.
type instanceViews struct{ *views }

// describe describes an instance, with the facts that AWS reports now.
func (w instanceViews) describe(ctx context.Context, f instances.Found) instances.Answer {
	a := f.Answer()
	if w.o.Instances != nil {
		if err := w.o.Instances.AddFacts(ctx, &a); err != nil {
			a.Notes = append(a.Notes, "launch time, market, image name and addresses are missing: "+err.Error())
		}
	}
	if a.Commit != nil {
		a.Commit.URL = linksOf(w.current, f.Target.Source).Commit(a.Commit.Revision)
	}
	return a
}

// apiFault is an error for a program.
type apiFault struct {
	Message string `json:"error"`
	Hint    string `json:"hint"`
}

// refuse writes an error for a program.
func refuse(rw http.ResponseWriter, log *slog.Logger, status int, why apiFault) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	if err := json.NewEncoder(rw).Encode(why); err != nil {
		log.Debug("reader of an answer left", "error", err)
	}
}

// toInstance leads a search for the id of an instance to the pool of that instance. All other requests get
// the page.
func (w *web) toInstance(page http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if id, err := instances.ParseID(r.URL.Query().Get("q")); err == nil {
			if found := instances.Find(w.current.Targets.All(), id); len(found) == 1 && found[0].Instance.ID == id.Text {
				http.Redirect(rw, r, instanceLink(found[0].Target.Name, found[0].Pool, id.Text), http.StatusSeeOther)
				return
			}
		}
		page(rw, r)
	}
}

// instanceLink returns the URL of an instance on the page of its pool.
func instanceLink(target string, p *plan.PoolStatus, id string) string {
	return poolLink(target, p.Namespace, p.Name) + "?" + url.Values{"instance": {id}}.Encode() + "#" + url.PathEscape(id)
}

// instanceRow is an instance in the table of a pool.
type instanceRow struct {
	plan.Instance
	Link, Mark string
	Selected   bool // the reader searched for it
	Version    string
	Commit     commitView
	Ends       moment // the end of its drain
	Draining   bool
	Facts      *instances.Facts // nil if the reader did not ask for them, or AWS did not answer
	Launched   moment
	Built      moment // creation of the image
}

// factsView says whether the table of instances has facts that AWS reports now.
type factsView struct {
	// Ask is the URL of the page with these facts, empty if it has them or AWS cannot be read.
	Ask string
	// Fault is the reason why the requested facts are missing.
	Fault string
}

// selectedView shows the facts about the instance that the reader searched for.
type selectedView struct {
	instances.Answer
	Launched moment
	Built    moment // creation of the image
}

const instancesPerPage = 50

// addRows adds the instances of a pool: the page of the list that has the selected one, or the requested
// page.
func (w instanceViews) addRows(ctx context.Context, v *poolPage, t *current.TargetState, p *plan.PoolStatus, q url.Values) {
	selected := -1
	for i := range p.Instances {
		if id := q.Get("instance"); id != "" && p.Instances[i].ID == id {
			selected = i
		}
	}
	page := readPoolFilter(q).Page
	if selected >= 0 && q.Get("page") == "" {
		page = selected/instancesPerPage + 1
	}
	from, to, at := window(page, instancesPerPage, len(p.Instances))
	l := linksOf(w.current, t.Source)
	for i := from; i < to; i++ {
		row := w.row(t.Name, p, &p.Instances[i], l)
		row.Selected = i == selected
		v.Machines = append(v.Machines, row)
	}
	pageLink := func(page int, facts bool) string {
		link := v.Link + "?page=" + strconv.Itoa(page)
		if facts {
			link += "&facts=1"
		}
		return link + "#h-machines"
	}
	wants := q.Get("facts") != ""
	v.MachinePager = pagerOf(from, to, len(p.Instances), at, "instance", func(page int) string { return pageLink(page, wants) })
	switch {
	case w.o.Instances == nil || from == to:
	case wants:
		v.Facts.Fault = w.addFacts(ctx, t.Name, v.Machines)
	default:
		v.Facts.Ask = pageLink(at, true)
	}
	if selected >= 0 {
		a := w.describe(ctx, instances.Found{Target: t, Pool: p, Instance: &p.Instances[selected]})
		s := selectedView{Answer: a}
		if a.AWS != nil {
			s.Launched = momentOf(w.current, a.AWS.LaunchedAt)
			if a.AWS.Image != nil {
				s.Built = momentOf(w.current, a.AWS.Image.CreatedAt)
			}
		}
		v.Selected = &s
	}
}

// row prepares the row of an instance of a pool.
func (w instanceViews) row(target string, p *plan.PoolStatus, i *plan.Instance, l forge.Links) instanceRow {
	row := instanceRow{Instance: *i, Link: instanceLink(target, p, i.ID), Mark: instanceMark(i.State, i.Health)}
	if i.TemplateVersion != "" {
		row.Version = "v" + i.TemplateVersion
	}
	if n := p.NoteOf(i); n != nil && n.Revision != "" {
		row.Commit = commitView{Short: n.Revision, Subject: n.Subject, Link: l.Commit(n.Revision)}
	}
	for _, d := range p.Draining {
		if d.Instance == i.ID {
			row.Draining, row.Ends = true, momentOf(w.current, d.Until)
		}
	}
	return row
}

// addFacts adds the facts that AWS reports now to rows, and returns why it cannot.
func (w instanceViews) addFacts(ctx context.Context, target string, rows []instanceRow) string {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	facts, err := w.o.Instances.Facts(ctx, target, ids)
	if err != nil {
		return "Launch time, market, image name and addresses are missing: " + err.Error()
	}
	for i := range rows {
		r := &rows[i]
		if r.Facts = facts[r.ID]; r.Facts == nil {
			continue
		}
		r.Launched = momentOf(w.current, r.Facts.LaunchedAt)
		if image := r.Facts.Image; image != nil {
			r.ImageID, r.Built = image.ID, momentOf(w.current, image.CreatedAt)
		}
	}
	return ""
}
