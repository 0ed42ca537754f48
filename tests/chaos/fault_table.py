"""The 52 faults of the reliability goal: which tests provoke each, or why none does.

A row counts as automated when the named tests provoke its fault, for real or by injection.
"""

from typing import NamedTuple

KILLED = "chaos/test_killed_processes.py::test_killed_nights_end_true"
SERVER = "chaos/test_killed_postgresql.py::"
SCHEDULES = "model/test_seeded_schedules.py::test_a_schedule_of_faults_and_crashes_ends_true"
BATCH = "recon/gateway_client/money/test_batch_reply.py::"
TRANSPORT = "recon/gateway_client/interface/test_transport.py::"
NIGHT = "recon/steps/night/test_whole_night.py::"
OPENING = "recon/files/formats/test_named_bytes.py::"
BAD_FILES = "recon/files/test_bad_files.py::"


class Fault(NamedTuple):
    """One row of the table."""

    what: str
    tests: tuple[str, ...] = ()
    why_not: str = ""


FAULTS: dict[int, Fault] = {
    1: Fault(
        "kill -9 at any point",
        (
            KILLED,
            "recon/steps/test_killed_nights.py::test_a_night_killed_at_each_point_of_a_batch_ends_whole",
        ),
    ),
    2: Fault(
        "SIGTERM or SIGINT in a batch",
        ("recon/steps/ground/test_ending.py::test_a_night_that_is_told_to_end_marks_its_batch",),
    ),
    3: Fault(
        "the process sleeps between claim and send",
        (
            "recon/settlement/test_sender.py::test_a_process_that_slept_after_its_claim_does_not_send",
            "chaos/test_stopped_nights.py::test_a_start_beside_a_stopped_night_does_nothing",
        ),
    ),
    4: Fault(
        "machine reset",
        (),
        "it is row 1 and the loss of what no fsync brought to the disk; that our fsyncs come first "
        "holds test_journal::test_nothing_unflushed_is_behind_a_byte_that_leaves, that a disk "
        "keeps what it acknowledged only a virtual machine or its power switch can show",
    ),
    5: Fault(
        "out of memory",
        (
            # The kernel ends a process by SIGKILL, Python says MemoryError at any point.
            KILLED,
            "model/test_starved_nights.py::test_a_night_that_runs_out_of_memory_ends_true",
        ),
    ),
    6: Fault(
        "two starts on one host",
        (
            "chaos/test_two_starts.py::test_of_two_nights_at_a_barrier_one_works_on_sqlite",
            "chaos/test_two_starts.py::test_of_two_nights_at_a_barrier_one_works_on_postgresql",
        ),
    ),
    7: Fault(
        "two machines, same night",
        (
            "chaos/test_stopped_nights.py::test_a_stopped_night_that_lost_its_lock_is_taken_over_only_when_it_is_gone",
            "recon/store/database/test_owner.py::test_a_process_id_that_is_used_again_is_another_owner",
        ),
    ),
    8: Fault(
        "Prefect runs the night again",
        (
            "flows/test_outcome.py::test_a_held_night_is_cancelled_with_the_holder_named",
            "tasks/test_running.py::test_money_is_never_sent_again_by_prefect",
        ),
    ),
    9: Fault(
        "a Dask worker dies",
        (
            "recon/workers/test_dask_workers.py::test_a_killed_worker_changes_nothing",
            "recon/workers/test_dask_workers.py::test_a_scheduler_that_goes_away_ends_the_step",
        ),
    ),
    10: Fault(
        "PostgreSQL killed around T1 and T2",
        (SERVER + "test_a_server_that_dies_in_a_night_loses_and_doubles_nothing",),
    ),
    11: Fault(
        "the advisory lock's connection ended",
        (
            SERVER + "test_a_server_that_dies_in_a_night_loses_and_doubles_nothing",
            "recon/store/database/test_night_lock.py::test_a_lock_that_the_server_dropped_no_longer_stands",
        ),
    ),
    12: Fault(
        "PostgreSQL read-only",
        (SERVER + "test_a_read_only_database_is_refused_before_money_moves",),
    ),
    13: Fault(
        "SQLite locked by another process",
        (
            "recon/steps/money/test_spilled.py::test_a_reply_that_a_locked_database_did_not_take_is_not_lost",
            "recon/store/database/test_engine.py::test_a_locked_database_is_one_sentence",
        ),
    ),
    14: Fault(
        "disk full at the database",
        (
            "recon/steps/money/test_spilled.py::test_a_disk_that_is_full_when_the_reply_comes_loses_nothing",
        ),
    ),
    15: Fault(
        "disk full at the reports folder",
        (
            "reports/drawing/test_in_place.py::test_a_disk_that_fills_while_a_file_is_written_leaves_nothing",
        ),
    ),
    16: Fault(
        "reports folder read-only or missing",
        (NIGHT + "test_a_reports_folder_that_cannot_be_written_stops_before_money",),
    ),
    17: Fault(
        "workbook open or another is there",
        (
            "reports/drawing/test_in_place.py::test_a_workbook_that_is_open_is_not_touched",
            "reports/test_workbook.py::test_another_workbook_is_never_overwritten",
        ),
    ),
    18: Fault(
        "crash while the report is written",
        (
            "reports/drawing/test_in_place.py::test_a_process_killed_while_it_writes_leaves_no_file_of_that_name",
        ),
    ),
    19: Fault(
        "SQLite file damaged",
        ("recon/store/database/test_engine.py::test_a_damaged_database_is_one_sentence",),
    ),
    20: Fault(
        "outcome of a commit unknown",
        ("recon/store/money/test_lasting_journal.py::test_a_connection_that_ends_in_a_commit",),
    ),
    21: Fault(
        "connection refused, certificate wrong",
        (
            TRANSPORT + "test_a_refused_connection_is_surely_not_sent",
            TRANSPORT
            + "test_a_certificate_that_nobody_vouches_for_is_refused_before_anything_is_sent",
        ),
    ),
    22: Fault(
        "reset before the request was read",
        (
            TRANSPORT
            + "test_a_server_that_reads_only_after_the_client_gave_up_is_an_unknown_outcome",
            KILLED,
        ),
    ),
    23: Fault("effect, then a broken answer", (SCHEDULES, KILLED)),
    24: Fault("no effect and a broken answer", (SCHEDULES, KILLED)),
    25: Fault(
        "late effect",
        (
            "recon/steps/test_killed_nights.py::test_an_effect_that_comes_late_is_not_doubled",
            SCHEDULES,
        ),
    ),
    26: Fault(
        "queries lag, flip or fail",
        (
            SCHEDULES,
            "chaos/test_many_nights.py::test_books_equal_the_truth_after_many_nights_of_faults",
        ),
    ),
    27: Fault(
        "slow or endless replies",
        (TRANSPORT + "test_a_request_that_left_without_a_whole_reply_is_an_unknown_outcome",),
    ),
    28: Fault(
        "HTTP errors and Retry-After",
        (
            BATCH + "test_statuses_that_never_prove_anything",
            "recon/gateway_client/query/test_query_bounds.py::test_retry_after_is_a_count_or_a_date_and_never_negative",
            "recon/gateway_client/query/test_key_rounds.py::test_a_wait_that_would_end_after_the_deadline_is_not_begun",
        ),
    ),
    29: Fault("redirects", (TRANSPORT + "test_a_redirect_is_handed_back_and_not_followed",)),
    30: Fault(
        "replies that are no JSON",
        (
            BATCH + "test_bytes_that_are_no_json_object_are_unknown",
            "recon/gateway_client/test_reply_fuzz.py::test_no_reply_makes_a_reader_fail",
        ),
    ),
    31: Fault(
        "hostile XML",
        (
            "recon/files/formats/test_xml_records.py::test_what_is_not_well_formed_is_refused",
            "recon/gateway_client/payments/test_payment_reply.py::test_a_result_that_cannot_be_read_leaves_the_payment_unknown",
            "recon/gateway_client/test_reply_fuzz.py::test_no_reply_makes_a_reader_fail",
        ),
    ),
    32: Fault(
        "rows of a reply missing, twice, foreign",
        (
            BATCH + "test_a_missing_row_is_unknown_and_the_others_stand",
            BATCH + "test_a_row_twice_that_contradicts_itself_is_unknown",
            NIGHT + "test_a_reply_that_lies_is_never_believed",
        ),
    ),
    33: Fault(
        "signature wrong, missing, replayed",
        (
            BATCH + "test_a_signature_that_is_wrong_or_missing",
            BATCH + "test_every_changed_character_of_a_signature_is_refused",
        ),
    ),
    34: Fault(
        "clock set",
        (
            "model/test_set_clocks.py::test_a_clock_that_was_put_forward_ends_no_quarantine",
            "model/test_set_clocks.py::test_answers_from_before_a_clock_was_put_back_prove_nothing",
        ),
    ),
    35: Fault(
        "daylight saving and zones",
        (
            "recon/model/test_business_date.py::test_every_instant_has_exactly_one_business_date",
            "recon/model/test_business_date.py::test_hours_of_grace_are_elapsed_time_over_a_clock_change",
        ),
    ),
    36: Fault(
        "database restored",
        (
            "recon/steps/money/test_restore.py::test_a_restored_database_sends_nothing",
            "model/test_restored_databases.py::test_a_database_that_is_not_the_newest_sends_nothing",
        ),
    ),
    37: Fault(
        "same file twice, file replaced",
        (
            NIGHT + "test_a_file_put_back_after_a_newer_one_is_asked_again",
            OPENING + "test_a_file_that_changes_while_it_is_read_is_refused",
        ),
    ),
    38: Fault(
        "file still uploading",
        (
            OPENING + "test_a_file_that_changes_while_it_is_read_is_refused",
            BAD_FILES + "test_a_trailer_proves_the_whole_file",
        ),
    ),
    39: Fault(
        "empty or huge file",
        (
            "recon/files/formats/test_csv_text.py::test_a_header_alone_is_a_table_without_rows",
            "recon/files/formats/test_csv_text.py::test_more_rows_than_the_bound_are_refused",
            OPENING + "test_a_file_above_the_bound_is_not_read",
        ),
    ),
    40: Fault(
        "encodings and ragged rows",
        (
            "recon/files/formats/test_csv_text.py::test_a_csv_that_is_not_one_is_refused_with_its_place",
            BAD_FILES + "test_a_file_that_is_not_what_it_says_is_refused_whole",
        ),
    ),
    41: Fault(
        "amounts that are none",
        (
            "recon/files/typing/test_amounts.py::test_text_that_is_no_amount_is_refused_and_never_rounded",
        ),
    ),
    42: Fault(
        "hostile order numbers",
        (
            "recon/files/typing/test_text_cells.py::test_no_line_end_slips_through_at_the_end",
            BAD_FILES + "test_a_row_that_cannot_be_read_is_refused_by_line_and_column",
        ),
    ),
    43: Fault(
        "links, FIFOs and devices in the inbox",
        (
            OPENING + "test_only_regular_files_are_opened",
            OPENING + "test_a_name_longer_than_the_file_system_allows_is_refused",
        ),
    ),
    44: Fault(
        "hostile workbooks",
        (
            "recon/files/formats/test_xlsx_book.py::test_a_workbook_that_is_not_plain_is_refused",
            "recon/files/formats/test_xlsx_book.py::test_a_declared_size_is_bounded_before_anything_is_unpacked",
        ),
    ),
    45: Fault(
        "formula injection",
        ("reports/test_workbook.py::test_foreign_text_is_never_a_formula_nor_an_error",),
    ),
    46: Fault(
        "configuration wrong or unsafe",
        (
            "recon/config/test_keys.py::test_a_key_file_that_others_can_read_is_refused",
            "recon/config/test_settings.py::test_a_mistake_in_a_file_is_named_with_file_and_key",
            TRANSPORT + "test_a_base_url_that_is_not_safe_is_refused",
        ),
    ),
    47: Fault(
        "Prefect's server away in the night",
        ("flows/test_troubled_nights.py::test_trouble_with_prefect_moves_no_money_twice",),
    ),
    48: Fault(
        "log sink fails",
        ("recon/cli/test_speaking.py::test_a_log_that_cannot_be_written_ends_no_work",),
    ),
    49: Fault(
        "history edited by hand",
        (
            "recon/steps/care/test_verify.py::test_an_edited_history_is_found",
            "recon/store/database/test_history.py::test_the_first_broken_link_is_named",
        ),
    ),
    50: Fault(
        "approver is the proposer, approval old or void",
        (
            "recon/steps/money/test_approve.py::test_the_same_person_cannot_be_the_second",
            "recon/steps/money/test_approve.py::test_a_night_sends_nothing_on_an_approval_that_ran_out",
            "recon/steps/money/test_approve.py::test_a_changed_list_voids_the_first_word",
        ),
    ),
    51: Fault(
        "key changed in the night",
        (
            "recon/steps/test_changed_keys.py::test_a_key_that_changes_while_a_night_runs_is_the_next_nights",
            SCHEDULES,  # a gateway that signs by another key
        ),
    ),
    52: Fault(
        "open files and slow disks",
        (
            "model/test_starved_nights.py::test_a_night_without_open_files_ends_true",
            # A claim whose commit takes longer than its limit looks the same to the sender.
            "recon/settlement/test_sender.py::test_a_process_that_slept_after_its_claim_does_not_send",
        ),
    ),
}
