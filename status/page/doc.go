// Package page serves the contents of a state to people and programs: HTML pages, the API below
// /api/v1, /healthz and /readyz.
//
// Every request goes the same way. web has a method for each address. It reads the answer from the
// state, and a view turns that into what the template reads: text that is ready to be shown, with
// no decision left. The template is executed into a buffer, so that a reader gets a whole page or
// none, and hidden characters in it are written out before it is sent.
//
// Terms. A view is the value that one template reads; its type is in view*.go and named after the
// page. The layout is common to all pages, and each view embeds it. A mark is a state, a value of
// report.Phase, and at the same time the CSS class that draws it. The viewer is the user of the
// page: what the page offers depends on the viewer, what it shows does not.
//
// Rules, and why:
//
//   - Nothing here changes anything, and every address answers GET and HEAD only. Forms post to
//     package commands, behind package access. A handler that could write would need its own
//     protection against forged requests.
//   - Nothing is loaded from elsewhere, and nothing inline runs: the headers forbid it, so that a
//     text which breaks out of its element still cannot act. Styles and script are embedded, with
//     the hash of their content in their name, so that browsers keep them.
//   - Pages work without script. Script only replaces parts of a page that package live reports as
//     changed.
//   - Every list is cut to a window, and each page bounds its rows: the page of a fleet of 10,000
//     pools costs about as much as the page of ten.
//   - Pictures are SVG whose numbers are worked out here. Each has a text that says what it shows,
//     and states differ in shape as well as in colour.
//   - Addresses hold the filter, so that a reader can keep a view and send it on. An unknown filter
//     value finds nothing, rather than everything.
//   - Everything on the page was redacted when the state received it. The page redacts nothing.
//   - Answers to programs carry an ETag over their content, so that repeated requests cost few
//     bytes.
package page
