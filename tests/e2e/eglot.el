;;; A person with Emacs and eglot, configured as the README says: opens a CSV file, takes a code action,
;;; and is told where the report is.  Arguments: the binary and the file.  -*- lexical-binding: t -*-

(package-initialize)
(require 'eglot)

(defvar binary (pop command-line-args-left))
(defvar file (pop command-line-args-left))
(defvar patience 180 "Seconds until something that must happen counts as failed.")

;; The README's recipe.
(define-derived-mode csv-data-mode text-mode "CSV")
(add-to-list 'auto-mode-alist '("\\.[ct]sv\\'" . csv-data-mode))
(put 'csv-data-mode 'eglot-language-id "csv")
(add-to-list 'eglot-server-programs `(csv-data-mode . (,binary "lsp" :initializationOptions (:model "playbook" :sandbox (:backend "process")))))

(defun say (key value) (princ (format "%s=%s\n" key value)))

(defun until (what condition)
  "Let things happen until CONDITION gives something, which is returned."
  (let ((end (time-add nil patience)) result)
    (while (not (setq result (funcall condition)))
      (when (time-less-p end nil)
        (say "error" (format "never happened: %s" what))
        (kill-emacs 1))
      (accept-process-output nil 0.05))
    result))

(defvar told nil "Messages of the server, the latest first.")
(cl-defmethod eglot-handle-notification :before (_server (_method (eql window/showMessage)) &key message &allow-other-keys)
  (push message told))

(find-file file)
(apply #'eglot (eglot--guess-contact))
(let ((server (until "the server is ready" (lambda () (eglot-current-server)))))
  (say "server" (plist-get (eglot--server-info server) :name))
  ;; A code action on the table, chosen as a person would.
  (let (titles)
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt items &rest _)
                 (setq titles (mapcar #'car items))
                 "Plot what matters")))
      (let ((last-nonmenu-event ?x))
        (eglot-code-actions (point-min) (point-min) nil t)))
    (say "actions" (string-join titles "|")))
  (let ((path (until "the report is named"
                     (lambda ()
                       (cl-some (lambda (message)
                                  (and (string-match "\\(/[^\n]*report\\.md\\)" message)
                                       (match-string 1 message)))
                                told)))))
    (say "report" path))
  ;; Hover and its text, as eldoc asks for it.
  (goto-char (point-min))
  (let ((hover (jsonrpc-request server :textDocument/hover (eglot--TextDocumentPositionParams))))
    (say "hover" (replace-regexp-in-string "\n" " " (format "%s" hover))))
  (eglot-shutdown server)
  (until "the server has ended" (lambda () (not (jsonrpc-running-p server))))
  (say "ended" "yes"))
(kill-emacs 0)
