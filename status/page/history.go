package page

import (
	"net/http"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
)

func (w *web) apiEvents(rw http.ResponseWriter, r *http.Request) {
	serveList(w, rw, r, w.current.Activity.QueryEvents, func(list []events.Event) any { return history.EventList{Events: list} })
}

func (w *web) apiHistory(rw http.ResponseWriter, r *http.Request) {
	serveList(w, rw, r, w.current.Activity.QueryRuns, func(list []history.Run) any { return history.PassList{Passes: list} })
}

// serveList answers an API request for events or passes: it parses the filter of the URL, and sends the result
// of query in the form of answer. An empty list is sent as [].
func serveList[T any](w *web, rw http.ResponseWriter, r *http.Request, query func(history.Filter) ([]T, error), answer func([]T) any) {
	f, err := history.ParseFilter(r.URL.Query())
	if err != nil {
		plain(rw, http.StatusBadRequest, err.Error())
		return
	}
	list, err := query(f)
	if err != nil {
		w.o.Logger.Error("history cannot be read", "error", err)
		plain(rw, http.StatusInternalServerError, "weir cannot read the history; see weir's log")
		return
	}
	if list == nil {
		list = []T{}
	}
	w.sendJSON(rw, r, answer(list))
}
