// Package page serves a state to people and programs: HTML pages, the API below /api/v1, /healthz and
// /readyz.
//
// Every request is processed in the same way. web has a method for each path, which reads data from the
// state. A view converts the data to the input of the template: text that is ready to be shown, with all
// decisions made. The template is executed into a buffer, so that a reader gets a whole page or none.
// Hidden characters are escaped before the page is sent.
//
// Terms. A view is the input of one template. Its type is in view*.go and is named after the page. The
// layout is common to all pages, and each view embeds it. A mark is a state, a value of report.Phase, and
// also the CSS class that draws it. The viewer is the user of the page. The actions on a page depend on the
// viewer; its data does not.
//
// Rules, and why:
//
//   - Nothing in this package changes anything, and every path accepts only GET and HEAD. Forms
//     post to package commands, behind package access. A handler that could write would need its
//     own protection against forged requests.
//   - Nothing is loaded from other hosts, and nothing inline is executed. The headers enforce
//     that, so that a text which breaks out of its element still has no effect. Styles and script
//     are embedded, and their names contain a hash of their content, so that browsers cache them.
//   - Pages work without script. The script only replaces parts of a page that package live
//     reports as changed.
//   - Every list is cut to a window, and each page bounds its rows: a page for a fleet of 10,000
//     pools costs about as much as one for ten.
//   - Pictures are SVG with coordinates that this package computes. Each has a text alternative,
//     and states differ in shape as well as in colour.
//   - The URL contains the filter, so that a reader can bookmark and share a view. An unknown
//     filter value matches nothing.
//   - The state has redacted everything that a page shows. This package redacts nothing.
//   - Responses to programs have an ETag of their content, so that repeated requests cost few
//     bytes.
package page
